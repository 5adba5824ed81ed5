#include "program/going_on.h"

#include <algorithm>
#include <span>

namespace nitinol::program {
namespace {

/// Of fewer bytes, waking a thread takes longer than the messages.
constexpr std::size_t least_bytes = std::size_t{32} << 10;

/// About the seconds that a step computes, on one thread.
double seconds_of(const StepReport& step) {
  constexpr double bytes_per_s = 1e10, operations_per_s = 5e10;
  return static_cast<double>(step.bytes_read + step.bytes_written) / bytes_per_s +
         step.operations / operations_per_s;
}
/// Of less than this beside it, handing a collective to a thread and back takes longer.
constexpr double least_seconds = 50e-6;

bool contains(const std::vector<Value>& values, Value v) {
  return std::ranges::find(values, v) != values.end();
}

bool needs(const ProgramStep& step, const ProgramStep& before) {
  const auto touches = [&](Value v) { return contains(step.reads, v) || contains(step.writes, v); };
  return step.overwrites || std::ranges::any_of(before.writes, touches) ||
         std::ranges::any_of(before.reads, [&](Value v) { return contains(step.writes, v); });
}

}  // namespace

void let_go_on(ProgramDraft& draft) {
  for (std::size_t s = 0; s < draft.steps.size(); ++s) {
    StepDraft& step = draft.steps[s];
    if (!step.waits_for_others || step.report.bytes_read < least_bytes) continue;
    const auto launch_needs = [&](std::size_t first) {
      const auto steps = std::span(draft.steps).subspan(first, draft.steps[first].out.together);
      return std::ranges::any_of(steps, [&](const StepDraft& t) { return needs(t.out, step.out); });
    };
    std::size_t until = s + 1, launches = 0;
    double beside_s = 0;
    for (; until < draft.steps.size() && !launch_needs(until); ++launches) {
      beside_s += seconds_of(draft.steps[until].report);
      until += draft.steps[until].out.together;
    }
    if (beside_s < least_seconds) continue;
    step.out.until = until;
    step.report.beside = launches;
  }
}

}  // namespace nitinol::program
