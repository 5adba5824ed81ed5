#include "jit/same_steps.h"

#include <algorithm>

namespace nitinol::jit {
namespace {

bool same_steps(const PlanReport& a, const PlanReport& b) {
  return std::ranges::equal(a.steps, b.steps,
                            [](const program::StepReport& m, const program::StepReport& n) {
                              return m.kind == n.kind && m.ops == n.ops && m.launches == n.launches;
                            });
}

}  // namespace

const SignatureReport* with_same_steps(const SignatureReport& report,
                                       std::span<const SignatureReport> earlier) {
  const auto found = std::ranges::find_if(earlier, [&](const SignatureReport& other) {
    return other.tier == Tier::traced && same_steps(other.plan, report.plan) &&
           other.backward.has_value() == report.backward.has_value() &&
           (!report.backward || same_steps(*other.backward, *report.backward));
  });
  return found != earlier.end() ? &*found : nullptr;
}

}  // namespace nitinol::jit
