// Compiled functions with checks inside, next to eager: what both tests of them ask.
#pragma once

#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

namespace nitinol::test {

/// Checks that a Plan of `function`, of (x, y), gives eager's bits, and that its checks pass.
template <class Compiled, class F>
void check_good(const Compiled& compiled, const F& function, const Tensor& x, const Tensor& y) {
  CHECK(same_bits(settle(compiled, x, y), function(x, y)));
  CHECK(compiled.explain().failed_checks == 0);
  CHECK(compiled.explain().plan_calls == 1);
}

/// Checks that a call that eager refuses fails in the Plan, with eager's words.
template <class Compiled, class F>
void check_bad(const Compiled& compiled, const F& function, const Tensor& x, const Tensor& y) {
  const std::string eager = error_of([&] { return function(x, y); });
  const uint64_t before = compiled.explain().failed_checks;
  CHECK(error_of([&] { return compiled(x, y); }) == eager);
  CHECK(compiled.explain().failed_checks == before + (eager == "no error" ? 0 : 1));
}

}  // namespace nitinol::test
