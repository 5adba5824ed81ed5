// A step moves up to an earlier one of its kernel if nothing on the way stops it. An optimizer's
// updates are what this is for: all of them come last, are of one kernel, and each works on memory
// of its own, so that a model's hundred parameters cost one launch.
//
// Example: k(a -> b), matmul(b -> c), k(d -> e) becomes k(a -> b, d -> e), matmul(b -> c).
#include "program/horizontal_fusion.h"

#include "program/steps.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace nitinol::program {
namespace {

/// The kernel by which the step may be launched with others.
const Kernel* kernel_of(const StepDraft& step) {
  const bool is_flat =
      step.kernel && step.kernel->order == Order::none && step.out.sizes.size() == 1;
  return is_flat ? &*step.kernel : nullptr;
}

}  // namespace

std::vector<std::vector<std::size_t>> join_steps(std::span<const Joinable> steps,
                                                 std::size_t values) {
  std::vector<std::vector<std::size_t>> batches;
  // Per value: how many batches there were when one wrote it, and when one last touched it.
  std::vector<std::size_t> written(values, 0);
  std::vector<std::size_t> touched(values, 0);
  std::size_t acting = 0;                                     // the same, of one with an effect
  std::unordered_map<std::size_t, std::size_t> last_of_kind;  // by the kernel's hash
  for (std::size_t s = 0; s < steps.size(); ++s) {
    const ProgramStep& step = *steps[s].step;
    const Kernel* const kernel = steps[s].kernel;
    std::size_t first = step.overwrites ? acting : 0;  // the first batch it may be in
    for (const Value v : step.reads) first = std::max(first, written[v]);
    for (const Value v : step.writes) first = std::max(first, touched[v]);
    std::size_t place = batches.size();
    if (kernel != nullptr) {
      const auto [found, is_new] = last_of_kind.try_emplace(hash_of(*kernel), place);
      const bool joins =
          !is_new && found->second >= first && *steps[batches[found->second][0]].kernel == *kernel;
      place = joins ? found->second : place;
      found->second = place;
    }
    if (place == batches.size()) batches.emplace_back();
    batches[place].push_back(s);
    for (const Value v : step.writes) written[v] = touched[v] = std::max(touched[v], place + 1);
    for (const Value v : step.reads) touched[v] = std::max(touched[v], place + 1);
    if (step.effect != Effect::none) acting = std::max(acting, place + 1);
  }
  return batches;
}

void join_launches(ProgramDraft& draft) {
  std::vector<Joinable> joinable;
  joinable.reserve(draft.steps.size());
  for (const StepDraft& step : draft.steps) joinable.push_back({&step.out, kernel_of(step)});
  std::vector<StepDraft> steps;
  steps.reserve(draft.steps.size());
  for (const std::vector<std::size_t>& batch : join_steps(joinable, draft.out.places.size())) {
    const std::size_t start = steps.size();
    for (const std::size_t s : batch) {
      steps.push_back(std::move(draft.steps[s]));
      if (s == batch[0]) continue;
      steps[start].report.bytes_read += steps.back().report.bytes_read;
      steps[start].report.bytes_written += steps.back().report.bytes_written;
      steps[start].report.operations += steps.back().report.operations;
      std::ranges::copy(steps.back().report.nodes, std::back_inserter(steps[start].report.nodes));
      for (const uint32_t origin : steps.back().report.origins)
        note_origin(steps[start].report, origin);
    }
    steps[start].out.together = steps[start].report.launches = batch.size();
  }
  draft.steps = std::move(steps);
}

}  // namespace nitinol::program
