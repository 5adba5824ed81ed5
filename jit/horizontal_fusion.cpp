// A step moves up to an earlier one of its kernel if nothing on the way stops it. An optimizer's
// updates are what this is for: all of them come last, are of one kernel, and each works on memory
// of its own, so that a model's hundred parameters cost one launch.
//
// Example: k(a -> b), matmul(b -> c), k(d -> e) becomes k(a -> b, d -> e), matmul(b -> c).
#include "jit/horizontal_fusion.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

namespace nitinol::jit {
namespace {

/// The Variable's old value, if the buffer of `value` is its own: graph input, or -1. Nothing if it
/// is not.
std::optional<int> overwritten_by(const PlanImpl& plan, Value value) {
  const BufferPlan& buffer = plan.buffers[value];
  if (buffer.place != BufferPlan::Place::output) return std::nullopt;
  const int donor = plan.outputs[static_cast<std::size_t>(buffer.index)].donor;
  if (donor < 0) return std::nullopt;
  return plan.updates[static_cast<std::size_t>(donor)].overwritten;
}

StepEffects effects_of(const PlanDraft& draft, const StepDraft& step) {
  const StepPlan& plan = step.plan;
  StepEffects effects = {.reads = {}, .writes = {}, .can_fail = plan.can_fail};
  if (step.kernel && step.kernel->order == Order::none && plan.sizes.size() == 1)
    effects.kernel = &*step.kernel;
  for (std::size_t k = 0; k < plan.operands.size(); ++k) {
    if (plan.operands[k].value < 0) continue;
    const bool is_last = k + 1 == plan.operands.size();
    const bool is_output = step.kernel ? step.kernel->operands[k].role == Role::output : is_last;
    (is_output ? effects.writes : effects.reads)
        .push_back(static_cast<Value>(plan.operands[k].value));
  }
  for (std::size_t k = effects.writes.size(); k-- > 0;) {
    const std::optional<int> overwritten = overwritten_by(draft.impl, effects.writes[k]);
    if (!overwritten) continue;
    effects.overwrites = true;
    if (*overwritten >= 0)
      effects.writes.push_back(draft.graph.inputs[static_cast<std::size_t>(*overwritten)]);
  }
  return effects;
}

}  // namespace

std::vector<std::vector<std::size_t>> join_steps(std::span<const StepEffects> steps,
                                                 std::size_t values) {
  std::vector<std::vector<std::size_t>> batches;
  // Per value: how many batches there were when one wrote it, and when one last touched it.
  std::vector<std::size_t> written(values, 0);
  std::vector<std::size_t> touched(values, 0);
  std::size_t failing = 0;                                    // the same, of one that can fail
  std::unordered_map<std::size_t, std::size_t> last_of_kind;  // by the kernel's hash
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const StepEffects& step = steps[s];
    std::size_t first = step.overwrites ? failing : 0;  // the first batch it may be in
    for (const Value v : step.reads) first = std::max(first, written[v]);
    for (const Value v : step.writes) first = std::max(first, touched[v]);
    std::size_t place = batches.size();
    if (step.kernel != nullptr) {
      const auto [found, is_new] = last_of_kind.try_emplace(hash_of(*step.kernel), place);
      const bool joins = !is_new && found->second >= first &&
                         *steps[batches[found->second][0]].kernel == *step.kernel;
      place = joins ? found->second : place;
      found->second = place;
    }
    if (place == batches.size()) batches.emplace_back();
    batches[place].push_back(s);
    for (const Value v : step.writes) written[v] = touched[v] = std::max(touched[v], place + 1);
    for (const Value v : step.reads) touched[v] = std::max(touched[v], place + 1);
    if (step.can_fail) failing = place + 1;
  }
  return batches;
}

void join_launches(PlanDraft& draft) {
  std::vector<StepEffects> effects;
  effects.reserve(draft.steps.size());
  for (const StepDraft& step : draft.steps) effects.push_back(effects_of(draft, step));
  std::vector<StepDraft> steps;
  steps.reserve(draft.steps.size());
  std::size_t& first_overwrite = draft.impl.first_overwrite = SIZE_MAX;
  for (const std::vector<std::size_t>& batch : join_steps(effects, draft.impl.buffers.size())) {
    const std::size_t start = steps.size();
    for (const std::size_t s : batch) {
      if (effects[s].overwrites) first_overwrite = std::min(first_overwrite, start);
      steps.push_back(std::move(draft.steps[s]));
      if (s == batch[0]) continue;
      steps[start].report.bytes_read += steps.back().report.bytes_read;
      steps[start].report.bytes_written += steps.back().report.bytes_written;
    }
    steps[start].plan.together = steps[start].report.launches = batch.size();
  }
  draft.steps = std::move(steps);
}

}  // namespace nitinol::jit
