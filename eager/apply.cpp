#include "eager/apply.h"

#include "core/autocast.h"
#include "core/error.h"
#include "core/gradient_notes.h"
#include "core/interpreter.h"
#include "core/memory_notes.h"
#include "core/pending.h"
#include "core/profiling.h"
#include "core/result_check.h"
#include "core/stack.h"
#include "eager/argument.h"
#include "eager/composite.h"
#include "eager/elements.h"
#include "eager/launch.h"
#include "eager/memory_order.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace nitinol {
namespace {

bool is_tracked(Inputs inputs) {
  const auto tracks = [](const Tensor* input) { return input->tracks_gradient(); };
  return std::ranges::any_of(inputs, tracks);
}

/// What an earlier call of this function did; undefined if none did. (What lies in another
/// order matches as it lies, below run_in_order(): the op itself is noted of none.)
[[gnu::noinline]] Tensor matched(PendingCall& call, const Op& op, Inputs inputs,
                                 const Attrs& attrs) {
  Tensor result = call.match(op, inputs, attrs);
  if (result.is_defined() && is_tracked(inputs)) note_gradient(op, inputs, attrs, result);
  return result;
}

/// The same of a number beside a tensor that decides the dtype, without making a tensor of it.
[[gnu::noinline]] Tensor matched(PendingCall& call, const Op& op, const Argument& a,
                                 const Argument& b) {
  const Tensor* const inputs[] = {a.tensor(), b.tensor()};
  const bool is_first = inputs[0] == nullptr;
  if (is_first == (inputs[1] == nullptr)) return {};
  const Tensor& tensor = *inputs[is_first ? 1 : 0];
  if (!tensor.is_defined() || tensor.tracks_gradient()) return {};
  const Spec& spec = tensor.spec();
  if (!is_floating(spec.dtype) || spec.is_weak) return {};
  const Spec number = {
      .dtype = spec.dtype, .shape = {}, .is_weak = true, .device = default_device()};
  return call.match(op, inputs, number, element_of(spec.dtype, (is_first ? a : b).scalar()));
}

/// A tape is to see none of the ops that an op expands to which says itself how it is
/// differentiated.
Tensor apply_composite(const Op& op, Inputs inputs, const Attrs& attrs) {
  const bool tracks = is_tracked(inputs) && notes_gradients();
  if (tracks && (op.gradient.rule != nullptr || op.gradient.is_zero)) {
    std::vector<Tensor> bare;
    std::vector<const Tensor*> operands;
    for (const Tensor* input : inputs) bare.push_back(bare_copy(*input));
    for (const Tensor& input : bare) operands.push_back(&input);
    const Tensor result = apply_composite(op, operands, attrs);
    note_gradient(op, inputs, attrs, result);
    return result;
  }
  if (is_watched() || tracks) return op.expand(inputs, attrs);
  return eager::run_composite(op.expand, inputs, attrs);
}

Tensor run(const Op& op, Inputs inputs, const Attrs& attrs);

/// Of an op that autocast means: on operands in full precision if it wants that, and as usual in
/// what it is made of.
[[gnu::noinline]] Tensor run_autocast(const Op& op, Inputs inputs, const Attrs& attrs) {
  const AutocastScope as_usual(f32);
  if (op.precision != Precision::full) return run(op, inputs, attrs);
  std::vector<Tensor> full;
  std::vector<const Tensor*> operands;
  for (const Tensor* input : inputs) full.push_back(widened(*input));
  for (const Tensor& input : full) operands.push_back(&input);
  return run(op, operands, attrs);
}

/// apply() of operands that are defined.
Tensor run(const Op& op, Inputs inputs, const Attrs& attrs) {
  check_stack("an operation", stack_of_operation);
  if ((op.precision == Precision::full || op.kind == OpKind::composite) && is_autocasting())
      [[unlikely]]
    return run_autocast(op, inputs, attrs);
  if (op.kind == OpKind::composite) return apply_composite(op, inputs, attrs);
  if (op.kind == OpKind::elementwise && !is_watched()) {  // what most calls are, made short
    if (Tensor result = eager::compute_alike(op, inputs); result.is_defined()) return result;
  }
  if (PendingCall* const call = pending_call()) [[unlikely]] {
    if (Tensor result = matched(*call, op, inputs, attrs); result.is_defined()) return result;
  }
  const Spec spec = op.infer(op, inputs, attrs);
  const Dims order = eager::memory_order(op, inputs, spec);
  Tensor result = order.empty() ? current().run(op, inputs, attrs, spec)
                                : eager::run_in_order(order, op, inputs, attrs, spec);
  if (is_tracked(inputs)) note_gradient(op, inputs, attrs, result);
  return result;
}

/// What an op has given, where NaN is looked for.
void look_through(const Op& op, Inputs inputs, std::span<const Tensor> results) {
  const ResultCheck check = result_check();
  if (!looks_at_elements(check) || op.kind == OpKind::view) return;
  for (const Tensor& result : results) check_result(check, op, inputs, result);
}

/// run(), while somebody wants to know of ops.
[[gnu::noinline]] Tensor run_observed(const Op& op, Inputs inputs, const Attrs& attrs) {
  std::optional<profiling::OpSpan> span;
  if (profiling::is_on()) span.emplace(op, inputs, attrs);
  const uint64_t since = memory_notes::is_on() ? memory_notes::number_now() : 0;
  Tensor result = run(op, inputs, attrs);
  if (span) span->end({&result, 1});
  if (memory_notes::is_on()) memory_notes::note(op, {&result, 1}, since);
  look_through(op, inputs, {&result, 1});
  return result;
}

[[noreturn]] void throw_undefined(const Op& op, std::size_t operand, std::size_t count) {
  const std::string which = count == 1 ? "" : fmt::format(" number {}", operand + 1);
  throw Error(ErrorKind::value, {.where = std::string(op.name),
                                 .what = fmt::format("operand{} is an undefined tensor", which),
                                 .expected = "a tensor with a value",
                                 .got = "a default-constructed one",
                                 .fix = undefined_tensor_fix()});
}

void check_defined(const Op& op, Inputs operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    // Null stands for a number.
    if (operands[i] != nullptr && !operands[i]->is_defined())
      throw_undefined(op, i, operands.size());
  }
}

}  // namespace

bool runs_at_once(Inputs inputs) {
  const bool tracks = is_tracked(inputs) && notes_gradients(),
             checks = observed::is_any() && looks_at_elements(result_check());
  return !is_watched() && !tracks && !checks;
}

Tensor apply_at_once(Expand expand, Inputs inputs, const Attrs& attrs) {
  return runs_at_once(inputs) ? eager::run_composite(expand, inputs, attrs) : expand(inputs, attrs);
}

Tensor apply_rule(GradientRule rule, bool looks_at_result, int k, Inputs operands,
                  const Attrs& attrs) {
  const Tensor& gradient = *operands.back();
  const std::size_t count = operands.size() - (looks_at_result ? 2 : 1);
  std::vector<Tensor> inputs;
  for (const Tensor* operand : operands.first(count)) inputs.push_back(*operand);
  return rule({.attrs = attrs,
               .inputs = inputs,
               .input_specs = {},
               .result = looks_at_result ? *operands[count] : Tensor(),
               .result_spec = gradient.spec(),
               .gradient = gradient},
              k);
}

Tensor apply(const Op& op, Inputs inputs, const Attrs& attrs) {
  check_defined(op, inputs);
  if (observed::is_any()) [[unlikely]]
    return run_observed(op, inputs, attrs);
  return run(op, inputs, attrs);
}

Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs) {
  return apply(op, Inputs(inputs.begin(), inputs.size()), attrs);
}

std::vector<Tensor> apply_all(const Op& op, Inputs inputs, const Attrs& attrs) {
  check_defined(op, inputs);
  check_stack("an operation", stack_of_operation);
  std::optional<profiling::OpSpan> span;
  if (profiling::is_on()) span.emplace(op, inputs, attrs);
  const std::vector<Spec> specs = op.infer_all(op, inputs, attrs);
  std::vector<Tensor> results = current().run_all(op, inputs, attrs, specs);
  if (is_tracked(inputs)) note_gradients(op, inputs, attrs, results);
  if (span) span->end(results);
  if (observed::is_any()) [[unlikely]] {
    if (memory_notes::is_on()) memory_notes::note(op, results, UINT64_MAX);
    look_through(op, inputs, results);
  }
  return results;
}

Tensor apply_binary(const Op& op, const Argument& a, const Argument& b) {
  const Tensor* const operands[] = {a.tensor(), b.tensor()};
  check_defined(op, operands);
  const bool is_promoted = operands[0] != nullptr && operands[1] != nullptr &&
                           operands[0]->dtype() == operands[1]->dtype();
  if (is_promoted) {
    if (observed::is_any()) [[unlikely]]
      return run_observed(op, operands, {});
    return run(op, operands, {});
  }
  if (PendingCall* const call = pending_call()) [[unlikely]] {
    if (Tensor result = matched(*call, op, a, b); result.is_defined()) return result;
  }
  return apply_promoted(op, a, b, common_dtype(op.name, {&a, &b}));
}

}  // namespace nitinol
