#include "program/going_on.h"

#include <algorithm>
#include <span>

namespace nitinol::program {
namespace {

/// Of fewer bytes, waking a thread takes longer than the messages.
constexpr std::size_t least_bytes = std::size_t{32} << 10;

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
    std::size_t until = s + 1;
    for (; until < draft.steps.size() && !launch_needs(until); ++step.report.beside)
      until += draft.steps[until].out.together;
    if (step.report.beside > 0) step.out.until = until;
  }
}

}  // namespace nitinol::program
