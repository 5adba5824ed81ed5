// A step moves up to an earlier one of its kernel if nothing on the way stops it. An optimizer's
// updates are what this is for: all of them come last, are of one kernel, and each works on memory
// of its own, so that a model's hundred parameters cost one launch.
//
// Example: k(a -> b), matmul(b -> c), k(d -> e) becomes k(a -> b, d -> e), matmul(b -> c).
#include "jit/horizontal_fusion.h"

#include <algorithm>
#include <unordered_map>

namespace nitinol::jit {

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

}  // namespace nitinol::jit
