// What tests of functions that look at data share: counts, and calling until all is known.
#pragma once

#include "core/backend.h"
#include "core/pending.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace nitinol::test {

/// What the function did since the last look.
struct Counts {
  uint64_t matched = 0, computed = 0, cuts = 0, by_plan = 0, plans = 0;
};
template <class F>
Counts counts_of(const F& f) {
  const std::optional<SegmentsReport> report = f.explain().segments;
  if (!report) return {};
  return {report->matched, report->computed, report->cuts, report->cuts_by_plan, report->plans};
}
inline Counts operator-(const Counts& a, const Counts& b) {
  return {a.matched - b.matched, a.computed - b.computed, a.cuts - b.cuts, a.by_plan - b.by_plan,
          a.plans - b.plans};
}

inline bool generates() {
  return backend(default_device()).can_generate_code();
}

/// Of the latest signature.
template <class F>
Tier tier_of(const F& f) {
  return f.explain().signatures.back().tier;
}

template <class F>
void check_deferred(const F& f) {
  CHECK(tier_of(f) == (generates() ? Tier::deferred : Tier::eager));
}

/// Calls until each of these arguments is known, comparing with plain calls; then that nothing is
/// computed but by Plans.
template <class F, class... A>
void check_all_by_plans(const F& f, const std::vector<A>&... arguments) {
  const auto compiled = compile(f);
  const auto count = std::min({arguments.size()...});
  const auto call_all = [&] {
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(same_bits(compiled(arguments[i]...), f(arguments[i]...)));
  };
  for (int round = 0; round < 4; ++round) call_all();
  if (!generates()) return;
  check_deferred(compiled);
  const Counts before = counts_of(compiled);
  call_all();
  const Counts warm = counts_of(compiled) - before;
  CHECK(warm.computed == 0);
  CHECK(warm.plans == 0);
  CHECK(warm.matched > 0);
  CHECK(warm.by_plan == warm.cuts);
}

}  // namespace nitinol::test
