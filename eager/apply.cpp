#include "eager/apply.h"

#include "core/error.h"
#include "core/interpreter.h"
#include "eager/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace nitinol {
namespace {

/// True if no trace and no tape is to see the ops that a composite expands to.
bool is_unwatched(Inputs inputs) {
  const auto tracks = [](const Tensor* input) { return input->tracks_gradient(); };
  return is_base_current() && std::ranges::none_of(inputs, tracks);
}

Tensor apply_composite(const Op& op, Inputs inputs, const Attrs& attrs) {
  if (op.fused != nullptr && is_unwatched(inputs)) {
    if (Tensor result = op.fused(op, inputs, attrs); result.is_defined()) return result;
  }
  return op.expand(inputs, attrs);
}

[[noreturn]] void throw_undefined(const Op& op, std::size_t operand, std::size_t count) {
  const std::string which = count == 1 ? "" : fmt::format(" number {}", operand + 1);
  throw Error(ErrorKind::value, {.where = std::string(op.name),
                                 .what = fmt::format("operand{} is an undefined tensor", which),
                                 .expected = "a tensor with a value",
                                 .got = "a default-constructed one",
                                 .fix = undefined_tensor_fix()});
}

}  // namespace

void check_defined(const Op& op, Inputs operands) {
  for (std::size_t i = 0; i < operands.size(); ++i) {
    // Null stands for a number.
    if (operands[i] != nullptr && !operands[i]->is_defined())
      throw_undefined(op, i, operands.size());
  }
}

Tensor apply(const Op& op, Inputs inputs, const Attrs& attrs) {
  check_defined(op, inputs);
  if (op.kind == OpKind::composite) return apply_composite(op, inputs, attrs);
  if (op.kind == OpKind::elementwise && is_base_current()) {  // what most calls are, made short
    if (Tensor result = eager::compute_alike(op, inputs); result.is_defined()) return result;
  }
  return differentiating().run(op, inputs, attrs, op.infer(op, inputs, attrs));
}

Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs, const Attrs& attrs) {
  return apply(op, Inputs(inputs.begin(), inputs.size()), attrs);
}

}  // namespace nitinol
