// When a trusted trace is recorded again, and when a signature is worth a Plan.
#include "jit/clock.h"
#include "jit/ledger.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

using namespace nitinol;
using namespace nitinol::test;

namespace {

constexpr int64_t millisecond = 1'000'000;

}  // namespace

TEST_CASE("a changed host value is noticed when the check interval has passed", "[jit][checks]") {
  jit::FakeClock clock;
  double k = 2;
  const auto f = compile([&k](const Tensor& x) { return x * k; });
  const Tensor x = ones({3});
  for (int i = 0; i < 9; ++i) static_cast<void>(f(x));
  k = 3;
  clock.advance(9 * millisecond);
  // Stale, as documented, unless the Plan is just being compared with an eager call.
  static_cast<void>(f(x));
  CHECK_THAT(f.explain().signatures[0].reason, !Catch::Contains("does not do the same"));
  clock.advance(991 * millisecond);
  CHECK(same_bits(f(x), x * 3.0));
  CHECK_THAT(f.explain().signatures[0].reason, Catch::Contains("does not do the same"));
}

TEST_CASE("checks by time can be left out, and Check::never means never", "[jit][checks]") {
  jit::FakeClock clock;
  for (const CompileOptions& options :
       {CompileOptions{.check_interval = std::chrono::milliseconds(0)},
        CompileOptions{.check = Check::never}}) {
    const auto f = compile([](const Tensor& x) { return x * 2.0; }, options);
    for (int i = 0; i < 9; ++i) static_cast<void>(f(ones({3})));
    const uint64_t recorded = f.explain().recorded_calls;
    clock.advance(3600 * 1000 * millisecond);
    static_cast<void>(f(ones({3})));
    CHECK(f.explain().recorded_calls == recorded);
  }
}

TEST_CASE("checks by time cost at most one part in a hundred", "[jit][checks]") {
  jit::FakeClock clock;
  const auto f = compile([&clock](const Tensor& x) {
    clock.advance(20 * millisecond);
    return x * 2.0;
  });
  for (int i = 0; i < 9; ++i) static_cast<void>(f(ones({3})));
  const uint64_t recorded = f.explain().recorded_calls;
  clock.advance(1990 * millisecond);
  static_cast<void>(f(ones({3})));
  CHECK(f.explain().recorded_calls == recorded);
  clock.advance(20 * millisecond);
  static_cast<void>(f(ones({3})));
  CHECK(f.explain().recorded_calls == recorded + 1);
}

TEST_CASE("calls that come rarely are checked by turns, and so are signatures", "[jit][checks]") {
  jit::FakeClock clock;
  const auto f = compile([](const Tensor& x) { return x * 2.0; });
  for (int i = 0; i < 9; ++i) static_cast<void>(f(ones({3})));
  for (int i = 0; i < 9; ++i) static_cast<void>(f(ones({4})));
  Explanation before = f.explain();
  for (int i = 0; i < 20; ++i) {
    clock.advance(1000 * millisecond);
    static_cast<void>(f(ones({3})));
  }
  Explanation after = f.explain();
  const auto recorded_in = [&] { return after.recorded_calls - before.recorded_calls; };
  CHECK(recorded_in() >= 9);
  CHECK(recorded_in() <= 11);  // with that at call 16
  before = after;
  for (int i = 0; i < 3; ++i) {  // one of the four calls of each round
    clock.advance(1000 * millisecond);
    for (const int64_t n : {3, 4, 3, 4}) static_cast<void>(f(ones({n})));
  }
  after = f.explain();
  CHECK(recorded_in() >= 3);
  CHECK(recorded_in() <= 4);  // with that at call 16 of the second
}

TEST_CASE("the first signatures are compiled at once, later ones when they repay",
          "[jit][checks]") {
  jit::Ledger ledger;
  for (uint64_t i = 0; i < jit::Ledger::always_compiled; ++i) {
    CHECK(ledger.repays(1, 1e-6));
    ledger.compiled(1e-3);
  }
  CHECK_FALSE(ledger.repays(1, 1e-6));
  CHECK(ledger.repays(2000, 1e-6));  // half of a microsecond saved a call: a guess
  ledger.measured(10e-6, 1e-6);
  CHECK(ledger.repays(1200, 1e-6));
  ledger.measured(10e-6, 20e-6);  // Plans are slower
  CHECK_FALSE(ledger.repays(5000, 1e-6));
}

TEST_CASE("Plans that have served often make new signatures worth one at once", "[jit][checks]") {
  jit::Ledger ledger;
  for (int i = 0; i < 10; ++i) ledger.compiled(1e-3);
  CHECK_FALSE(ledger.repays(1, 1e-6));
  for (int i = 0; i < 100'000; ++i) ledger.plan_runs();
  CHECK(ledger.repays(1, 1e-6));
}

TEST_CASE("cheap Plans are made on trust, while little has been lost by that", "[jit][checks]") {
  using jit::Ledger;
  constexpr double call_s = 1e-3, plan_s = 2e-3;
  Ledger ledger;
  const auto make = [&](double seconds, uint64_t most) {
    uint64_t made = 0;
    for (; made < most && ledger.repays(1, call_s); ++made) ledger.compiled(seconds);
    return made;
  };
  SECTION("not so many more than are used") {
    CHECK(make(plan_s, 1000) == Ledger::ventured_plans);
    ledger.plan_runs();
    CHECK(make(plan_s, 1000) == 1);
  }
  SECTION("not for so much time") {
    CHECK(make(1.0, Ledger::always_compiled) == Ledger::always_compiled);
    for (int i = 0; i < 2; ++i) ledger.compiled(Ledger::ventured_s / 4);
    ledger.compiled(plan_s);  // the next is thought to cost as little
    CHECK(ledger.repays(1, call_s));
    for (int i = 0; i < 2; ++i) ledger.compiled(Ledger::ventured_s / 4);
    ledger.compiled(plan_s);
    CHECK_FALSE(ledger.repays(1, call_s));
    ledger.measured(call_s, call_s / 2);  // what Plans save may be ventured again
    for (int i = 0; i < 100; ++i) ledger.plan_runs();
    CHECK(ledger.repays(1, call_s));
  }
  SECTION("only if they cost no more than a few calls") {
    CHECK(make(100 * call_s, 1000) == Ledger::always_compiled);
  }
}

TEST_CASE("more shapes in turn than there may be signatures run on Plans as far as they fit",
          "[jit][checks]") {
  const auto f = compile([](const Tensor& x) { return tanh(exp(sin(x)) * 2.0) + cos(x); },
                         {.signature_limit = 6});
  for (int round = 0; round < 10; ++round) {
    for (int64_t n = 1; n <= 8; ++n) {
      const Tensor x = ones({n});
      CHECK(same_bits(f(x), f.eager(x)));
    }
  }
  const Explanation e = f.explain();
  CHECK(e.signatures.size() == 6);
  CHECK(e.plan_calls >= 6 * 5);
  REQUIRE(e.remarks.size() == 1);
  CHECK_THAT(e.remarks[0],
             Catch::Contains("20 calls ran eagerly because 6 signatures were in use"));
}

TEST_CASE("a signature that is not used any more makes room", "[jit][checks][host]") {
  const auto f = compile([](const Tensor& x) { return x * 2.0; }, {.signature_limit = 2});
  for (int64_t n = 1; n <= 2; ++n) static_cast<void>(f(ones({n})));
  for (int i = 0; i < 20; ++i) static_cast<void>(f(ones({1})));
  static_cast<void>(f(ones({3})));
  REQUIRE(f.explain().signatures.size() == 2);
  CHECK(f.explain().signatures[1].signature == "float32[3]");
}

TEST_CASE("every eager call of a compiled signature has a reason", "[jit][checks]") {
  const nn::Linear layer = nn::linear(3, 2);
  const auto f = compile([layer](const Tensor& x) { return sum(square(layer(x))); });
  for (int i = 0; i < 6; ++i) {
    static_cast<void>(grad([&](const Tensor& t) { return f(t); })(ones({4, 3})));
  }
  const SignatureReport report = f.explain().signatures.at(0);
  REQUIRE(report.eager_because.size() == 1);
  CHECK_THAT(report.eager_because[0].first, Catch::Contains("gradients of its gradients"));
  CHECK(report.eager_because[0].second == report.eager_calls);
  CHECK_THAT(to_string(f.explain()), Catch::Contains("calls eager: gradients of its gradients"));
}
