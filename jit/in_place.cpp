// The old value must not be read after the step that writes the new one, nor be a result; and all
// that can fail must come before, since a call that fails has changed nothing. A kernel may read
// the very elements that it writes.
#include "jit/in_place.h"

#include "core/hash.h"

#include <algorithm>
#include <bit>
#include <span>
#include <unordered_map>

namespace nitinol::jit {
namespace {

struct InputHash {
  std::size_t operator()(const tracer::TraceInput& input) const {
    Hash hash;
    hash.add(input.kind);
    hash.add(input.leaf);
    hash.add(input.is_gradient);
    if (input.leaf < 0) hash.add(std::bit_cast<uint64_t>(&input.captured.cell()));
    return hash.result();
  }
};

/// What is asked about each update, found once for all.
struct Uses {
  static constexpr std::size_t never = SIZE_MAX;

  std::unordered_map<tracer::TraceInput, int, InputHash> inputs;  ///< their numbers
  std::vector<int> outputs;              ///< per value: how many outputs it is
  std::vector<bool> is_base_of_output;   ///< per value
  std::vector<std::size_t> first, last;  ///< per value: the steps that touch it
  std::size_t last_failing = never;
};

Uses uses_of(const PlanDraft& draft) {
  const std::size_t count = draft.impl.buffers.size();
  Uses uses = {.inputs = {},
               .outputs = std::vector<int>(count, 0),
               .is_base_of_output = std::vector<bool>(count, false),
               .first = std::vector<std::size_t>(count, Uses::never),
               .last = std::vector<std::size_t>(count, 0)};
  for (std::size_t i = 0; i < draft.impl.inputs.size(); ++i)
    uses.inputs.try_emplace(draft.impl.inputs[i], static_cast<int>(i));
  for (const Value output : draft.graph.outputs) {
    ++uses.outputs[output];
    uses.is_base_of_output[draft.fusion.bases[output]] = true;
  }
  for (std::size_t s = 0; s < draft.steps.size(); ++s) {
    const StepPlan& step = draft.steps[s].plan;
    if (step.can_fail) uses.last_failing = s;
    for (const OperandPlan& operand : step.operands) {
      if (operand.value < 0) continue;
      const auto v = static_cast<std::size_t>(operand.value);
      uses.first[v] = std::min(uses.first[v], s);
      uses.last[v] = s;
    }
  }
  return uses;
}

bool touches(const StepPlan& step, Value value) {
  return std::ranges::find(step.operands, static_cast<int64_t>(value), &OperandPlan::value) !=
         step.operands.end();
}

/// The first operand of the step that is in the memory of `value`.
std::size_t operand_of(const StepPlan& step, Value value) {
  const auto found =
      std::ranges::find(step.operands, static_cast<int64_t>(value), &OperandPlan::value);
  return static_cast<std::size_t>(found - step.operands.begin());
}

/// True if every read of `input` in the step is of the very element being written: one pass, the
/// same strides.
bool reads_where_it_writes(const StepPlan& step, Value input, std::size_t written) {
  if (step.operands[written].byte_offset != 0) return false;
  const std::size_t rank = step.sizes.size();
  const auto strides = [&](std::size_t k) {
    return std::span(step.strides).subspan(k * rank, rank);
  };
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    if (step.operands[k].value != static_cast<int64_t>(input)) continue;
    if (step.operands[k].byte_offset != 0) return false;
    if (!std::ranges::equal(strides(k), strides(written))) return false;
  }
  // Along a reduced dimension the output does not move; then it is no elementwise update.
  return std::ranges::none_of(strides(written), [](int64_t s) { return s == 0; });
}

/// The first step that writes a value.
struct Write {
  std::size_t number;
  const StepPlan& step;
  std::optional<Kernel>& kernel;
  std::size_t operand;  ///< the value's
};

/// Whether the step may write to where `input` lies.
bool may_overwrite(const Graph& graph, const Uses& uses, const Write& write, Value input) {
  const Node& node = graph[input];
  if (!is_contiguous(node.spec.shape, node.strides) || uses.is_base_of_output[input] ||
      uses.last[input] > write.number)
    return false;
  if (!touches(write.step, input)) return true;
  // A reduction may read the input again after it has stored.
  const bool is_one_pass = write.kernel && write.kernel->order == Order::none;
  return is_one_pass && reads_where_it_writes(write.step, input, write.operand);
}

void allow_alias(const Write& write, Value input) {
  if (!write.kernel || !touches(write.step, input)) return;
  write.kernel->operands[write.operand].alias = static_cast<int16_t>(operand_of(write.step, input));
}

}  // namespace

void plan_in_place(PlanDraft& draft) {
  PlanImpl& plan = draft.impl;
  if (plan.updates.empty()) return;
  const Uses uses = uses_of(draft);
  for (UpdatePlan& update : plan.updates) {
    const Value output = update.result.base;
    // Several outputs of one value are one tensor: it can be in only one place.
    if (!update.result.is_base || plan.buffers[output].place != BufferPlan::Place::output ||
        uses.outputs[output] != 1 || uses.first[output] == Uses::never)
      continue;
    const std::size_t s = uses.first[output];
    if (uses.last_failing != Uses::never && uses.last_failing >= s) continue;
    // A gate holds back kernels alone.
    const bool is_gated = uses.last_failing != Uses::never && plan.is_gated;
    if (is_gated && !draft.steps[s].kernel) continue;
    const Write write = {.number = s,
                         .step = draft.steps[s].plan,
                         .kernel = draft.steps[s].kernel,
                         .operand = operand_of(draft.steps[s].plan, output)};
    if (const auto read = uses.inputs.find(update.variable); read != uses.inputs.end()) {
      const Value input = draft.graph.inputs[static_cast<std::size_t>(read->second)];
      if (!may_overwrite(draft.graph, uses, write, input)) continue;
      update.overwritten = read->second;
      allow_alias(write, input);
    }
    update.is_in_place = true;
    plan.outputs[static_cast<std::size_t>(plan.buffers[output].index)].donor =
        static_cast<int>(&update - plan.updates.data());
    plan.first_overwrite = std::min(plan.first_overwrite, s);
  }
}

}  // namespace nitinol::jit
