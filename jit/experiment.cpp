#include "jit/experiment.h"

#include "core/backend.h"
#include "core/element_text.h"
#include "core/error.h"
#include "core/host_access.h"
#include "eager/launch.h"
#include "jit/op_by_op.h"
#include "jit/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>

namespace nitinol::jit {
namespace {

/// The elements of a tensor in row-major order: where they lie, if they lie so. (Copies of
/// what a training step assigns took four times as long as the step.)
class Elements {
 public:
  explicit Elements(const Tensor& tensor)
      : elements_(tensor.internals()), size_(size_of(tensor.dtype())), first_(elements_.first()) {
    if (is_contiguous(tensor.shape(), elements_.strides())) return;
    copy_.reset(new std::byte[static_cast<std::size_t>(tensor.size()) * size_]);  // not initialised
    elements_.copy_to(copy_.get());
    first_ = copy_.get();
  }
  [[nodiscard]] const std::byte* first() const { return first_; }
  [[nodiscard]] uint64_t bits_at(std::size_t i) const {
    uint64_t bits = 0;
    std::memcpy(&bits, first_ + i * size_, size_);
    return bits;
  }

 private:
  const HostElements elements_;
  const std::size_t size_;
  std::unique_ptr<std::byte[]> copy_;
  const std::byte* first_;
};

bool is_nan(DType dtype, uint64_t bits) {
  if (!is_floating(dtype)) return false;
  return element_text(dtype, bits).starts_with("nan");
}

std::string text_of(DType dtype, uint64_t bits) {
  std::string text = element_text(dtype, bits);
  if (is_floating(dtype)) text += fmt::format(" ({:#0{}x})", bits, 2 + 2 * size_of(dtype));
  return text;
}

tracer::Trace trace_of(const Experiment& experiment, bool updates_in_place) {
  tracer::Trace trace;
  trace.graph = experiment.graph;
  std::vector<int> leaves;
  int tensors = 0, numbers = 0;
  for (const Value input : experiment.graph.inputs) {
    const bool is_number = is_anywhere(experiment.graph[input].spec);
    using Kind = tracer::TraceInput::Kind;
    leaves.push_back(is_number ? -1 : tensors);
    trace.inputs.push_back({.kind = is_number ? Kind::scalar : Kind::tensor,
                            .leaf = is_number ? numbers++ : tensors++,
                            .captured = {}});
  }
  trace.result_count = trace.graph.outputs.size();
  if (!updates_in_place) return trace;
  for (const auto& [output, input] : experiment.in_place) {
    if (leaves[input] >= 0) trace.replacements.push_back({output, leaves[input]});
  }
  return trace;
}

Plan::Options options_of(const Variation& variation) {
  return {.threads = variation.threads,
          .quick_code = variation.quick_code,
          .left_out = variation.left_out};
}

/// What a run gives: tensors, or an Error.
struct Outcome {
  std::vector<Tensor> outputs;
  std::optional<std::string> failure;
};

Outcome run_op_by_op(const Experiment& experiment) {
  try {
    return {outputs_op_by_op(experiment.graph, experiment.inputs), {}};
  } catch (const Error& error) {
    return {{}, error.message()};
  }
}

Outcome run_plan(const Experiment& experiment, const Plan& plan, const tracer::Trace& trace) {
  std::vector<Tensor> given;
  std::vector<const Tensor*> tensors;
  std::vector<uint64_t> numbers;
  const auto is_lent = [&](std::size_t leaf) {
    return std::ranges::any_of(trace.replacements, [&](const tracer::Replacement& replacement) {
      return static_cast<std::size_t>(replacement.leaf) == leaf;
    });
  };
  for (const Tensor& input : experiment.inputs) {
    if (is_anywhere(input.spec()))
      numbers.push_back(first_element(input));
    else
      given.push_back(is_lent(given.size()) ? eager::transferred(input, input.spec())
                                            : bare_copy(input));
  }
  for (const Tensor& tensor : given) tensors.push_back(&tensor);
  std::vector<const Tensor*> lent;
  for (const tracer::Replacement& replacement : trace.replacements)
    lent.push_back(&given[static_cast<std::size_t>(replacement.leaf)]);
  std::vector<Tensor> results(plan.result_count());
  const Plan::Outcome outcome = plan.run(
      {.tensors = tensors, .variables = {}, .scalars = {}, .number_bits = numbers, .lent = lent},
      results);
  if (outcome != Plan::Outcome::done) return {{}, "a check inside a kernel fails"};
  return {std::move(results), {}};
}

/// Nothing if no Plan can be made.
std::optional<Outcome> run_compiled(const Experiment& experiment, const Variation& variation) {
  const tracer::Trace trace = trace_of(experiment, variation.updates_in_place);
  try {
    return run_plan(experiment, Plan(trace, options_of(variation)), trace);
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::optional<std::string> first_difference(const Tensor& compiled, const Tensor& op_by_op) {
  if (compiled.is_defined() != op_by_op.is_defined()) return "only one of both is there";
  if (!compiled.is_defined()) return std::nullopt;
  if (compiled.spec() != op_by_op.spec()) {
    return fmt::format("it is {} compiled and {} op by op", describe(compiled.spec()),
                       describe(op_by_op.spec()));
  }
  if (compiled.size() == 0) return std::nullopt;
  const DType dtype = compiled.dtype();
  const Elements a(compiled), b(op_by_op);
  const auto all = static_cast<std::size_t>(compiled.size());
  if (std::memcmp(a.first(), b.first(), all * size_of(dtype)) == 0) return std::nullopt;
  std::size_t count = 0, first = 0;
  for (std::size_t i = all; i-- > 0;) {
    const uint64_t p = a.bits_at(i), q = b.bits_at(i);
    if (p == q || (is_nan(dtype, p) && is_nan(dtype, q))) continue;
    first = i;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return fmt::format("element {} is {} compiled and {} op by op; {} of {} differ",
                     to_string(indices_at(compiled.shape(), static_cast<int64_t>(first))),
                     text_of(dtype, a.bits_at(first)), text_of(dtype, b.bits_at(first)), count,
                     all);
}

std::optional<Difference> difference(const Experiment& experiment, const Variation& variation) {
  const std::optional<Outcome> got = run_compiled(experiment, variation);
  if (!got) return std::nullopt;
  const Outcome expected = run_op_by_op(experiment);
  const std::size_t count = experiment.graph.outputs.size();
  if (got->failure && expected.failure) return std::nullopt;
  if (got->failure) return Difference{count, *got->failure + " compiled, and none op by op"};
  if (expected.failure)
    return Difference{count, "no check fails compiled; op by op: " + *expected.failure};
  for (std::size_t i = 0; i < count; ++i) {
    if (auto text = first_difference(got->outputs[i], expected.outputs[i]))
      return Difference{i, std::move(*text)};
  }
  return std::nullopt;
}

std::optional<std::vector<Tensor>> plan_outputs(const Experiment& experiment,
                                                const Variation& variation) {
  std::optional<Outcome> got = run_compiled(experiment, variation);
  if (!got || got->failure) return std::nullopt;
  return std::move(got->outputs);
}

Experiment part_of(const Experiment& experiment, std::span<const Tensor> values,
                   const std::vector<bool>& cut, std::span<const Value> outputs) {
  const Graph& from = experiment.graph;
  std::vector<bool> is_needed(from.nodes.size());
  for (const Value output : outputs) is_needed[output] = true;
  for (Value v = static_cast<Value>(from.nodes.size()); v-- > 0;) {
    if (!is_needed[v] || cut[v]) continue;
    for (const Value operand : from[v].inputs) is_needed[operand] = true;
    if (!has_parts(from[v])) continue;
    for (std::size_t part = 1; part <= parts_of(from, v).size(); ++part) is_needed[v + part] = true;
  }
  Experiment part;
  std::vector<Value> numbers(from.nodes.size());
  for (Value v = 0; v < from.nodes.size(); ++v) {
    if (!is_needed[v]) continue;
    Node node = from[v];
    if (cut[v] && node.kind != Node::Kind::input) {
      node = {};
      node.kind = Node::Kind::input;
      node.spec = values[v].spec();
      node.strides = values[v].internals().strides;
    }
    for (Value& operand : node.inputs) operand = numbers[operand];
    numbers[v] = static_cast<Value>(part.graph.nodes.size());
    if (node.kind == Node::Kind::input) {
      part.graph.inputs.push_back(numbers[v]);
      part.inputs.push_back(values[v]);
    }
    part.graph.nodes.push_back(std::move(node));
  }
  for (const Value output : outputs) part.graph.outputs.push_back(numbers[output]);
  for (const auto& [output, input] : experiment.in_place) {
    const auto at = std::ranges::find(outputs, from.outputs[output]);
    const Value place = from.inputs[input];
    if (at == outputs.end() || !is_needed[place]) continue;
    const auto in = std::ranges::find(part.graph.inputs, numbers[place]);
    part.in_place.push_back({static_cast<std::size_t>(at - outputs.begin()),
                             static_cast<std::size_t>(in - part.graph.inputs.begin())});
  }
  return part;
}

std::optional<Experiment> interpreted(const Experiment& experiment) {
  const Device device = {.kind = Device::Kind::reference, .index = 0};
  Experiment moved = experiment;
  for (Node& node : moved.graph.nodes) {
    if (node.kind == Node::Kind::op &&
        (node.op->kind == OpKind::library || node.op->kind == OpKind::transfer))
      return std::nullopt;
    node.spec.device = device;
    if (node.kind == Node::Kind::constant) node.constant = laid_out(node.constant, node.spec, {});
  }
  for (std::size_t i = 0; i < moved.inputs.size(); ++i) {
    const Node& node = moved.graph[moved.graph.inputs[i]];
    moved.inputs[i] = laid_out(moved.inputs[i], node.spec, node.strides);
  }
  return moved;
}

Tensor laid_out(const Tensor& tensor, const Spec& spec, const Strides& strides) {
  if (is_anywhere(spec)) return make_number(spec, first_element(tensor));
  const Tensor there = tensor.device() == spec.device ? tensor : eager::transferred(tensor, spec);
  if (strides.size() != spec.shape.size() || is_contiguous(spec.shape, strides))
    return eager::contiguous(there);
  int64_t first = 0, last = 0;
  for (int i = 0; i < spec.shape.size(); ++i) {
    const int64_t reach = strides[i] * std::max<int64_t>(spec.shape[i] - 1, 0);
    (reach < 0 ? first : last) += reach;
  }
  const auto bytes = static_cast<std::size_t>(last - first + 1) * size_of(spec.dtype);
  Tensor made = make_tensor(spec, strides, -first, backend(spec.device).allocate(bytes));
  eager::copy_into(there, made);
  return made;
}

std::vector<PlannedStep> planned_steps(const Experiment& experiment, const Variation& variation) {
  const Plan plan(trace_of(experiment, variation.updates_in_place), options_of(variation));
  std::vector<PlannedStep> steps;
  for (const StepReport& step : plan.report().steps)
    steps.push_back({step.kind, list_of(step.ops)});
  return steps;
}

}  // namespace nitinol::jit
