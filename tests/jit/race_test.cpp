// Which of a signature's Plan and its eager code is faster, and what follows.
#include "jit/race.h"

#include "core/backend.h"
#include "jit/clock.h"
#include "nitinol.h"
#include "tests/jit/calls.h"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace nitinol;

TEST_CASE("the last pair is known, also if it only begins the race", "[jit][race]") {
  jit::Race race;
  CHECK(race.latest_pair().eager_s == 0);
  race.add_first(2e-6, 5e-6);
  CHECK(race.latest_pair().plan_s == 2e-6);
  race.add_pair(3e-6, 4e-6);
  CHECK(race.latest_pair().eager_s == 4e-6);
}

TEST_CASE("nearly all of eight pairs must speak against a Plan", "[jit][race]") {
  jit::Race race;
  for (int i = 0; i < 7; ++i) {
    race.add_pair(20e-6, 10e-6);
    CHECK_FALSE(race.plan_lost());  // too few to tell
  }
  race.add_pair(10e-6, 10e-6);
  CHECK(race.plan_lost());  // seven of eight
  race.add_pair(10.4e-6, 10e-6);
  CHECK_FALSE(race.plan_lost());  // six
  race.add_pair(20e-6, 10e-6);
  for (int i = 0; i < 6; ++i) race.add_pair(20e-6, 10e-6);
  REQUIRE(race.plan_lost());
  CHECK(*race.plan_lost() == "measured faster eagerly: 10 us a call, its Plan 20 us");
}

TEST_CASE("a Plan that does not clearly win against recordings is compared with eager calls",
          "[jit][race]") {
  jit::Race race;
  race.add_recording(20e-6, 10e-6);
  CHECK_FALSE(race.wants_pair());  // its first call may have been slow
  race.add_recording(8e-6, 10e-6);
  CHECK_FALSE(race.wants_pair());
  race.add_recording(9e-6, 10e-6);  // a recording takes longer than an eager call
  SECTION("to the end, as long as it loses") {
    for (int i = 0; i < 8; ++i) {
      CHECK(race.wants_pair());
      CHECK_FALSE(race.plan_lost());
      race.add_pair(9e-6, 8e-6);
    }
    CHECK(race.plan_lost());
    CHECK_FALSE(race.wants_pair());
  }
  SECTION("until it has won twice in a row") {
    race.add_pair(9e-6, 8e-6);
    race.add_pair(8e-6, 8e-6);
    CHECK(race.wants_pair());
    race.add_pair(7e-6, 8e-6);
    CHECK_FALSE(race.wants_pair());
  }
}

TEST_CASE("a decision against a Plan is revised when it wins again", "[jit][race]") {
  jit::Race race;
  for (int i = 0; i < 8; ++i) race.add_pair(20e-6, 10e-6);
  CHECK_FALSE(race.plan_won());
  for (int i = 0; i < 2; ++i) race.add_pair(5e-6, 10e-6);
  CHECK_FALSE(race.plan_won());
  race.add_pair(5e-6, 10e-6);
  CHECK(race.plan_won());  // three of the last four
}

TEST_CASE("a busy machine's hiccups in a quarter of the times decide nothing", "[jit][race]") {
  // One call in four takes ten times as long, on either side: a sequence with a fixed seed.
  uint64_t state = 1;
  const auto time = [&state](double seconds) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    return (state >> 62U) == 0 ? 10 * seconds : seconds;
  };
  int lost = 0;
  for (int function = 0; function < 1000; ++function) {
    jit::Race race;
    for (int pair = 0; pair < 11; ++pair) {  // the checks of 4096 calls
      race.add_pair(time(9e-6), time(10e-6));
      lost += race.plan_lost() ? 1 : 0;
    }
  }
  CHECK(lost <= 2);
}

namespace {

/// Looks at its argument, and at what it makes of it.
Tensor looking(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 4; ++i) y = y.item<float>() > 0 ? y * 0.5 : y + 1.0;
  return y;
}

}  // namespace

TEST_CASE("segments of little make way for eager calls", "[jit][race]") {
  const jit::RealClock clock;
  const auto g = compile(looking);
  const Tensor x = full({}, 3.0);
  for (int call = 1; call <= 1100; ++call) static_cast<void>(g(x));
  CHECK(same_bits(g(x), looking(x)));
  const Explanation e = g.explain();
  const SignatureReport& report = e.signatures.at(0);
  INFO(e);
  if (std::getenv("NITINOL_CHECK") == nullptr) CHECK(report.eager_calls > 0);  // some were compared
  if (report.tier == Tier::eager) CHECK(report.reason.starts_with("measured faster eagerly"));
}

TEST_CASE("where no time passes, segments are compared with nothing", "[jit][race]") {
  const auto g = compile(looking);
  const Tensor x = full({}, 3.0);
  for (int call = 1; call <= 1100; ++call) static_cast<void>(g(x));
  CHECK(g.explain().signatures.at(0).eager_calls == 0);
}

TEST_CASE("without generated code an interpreted Plan makes way for eager loops", "[jit][race]") {
  const jit::RealClock clock;
  const Threads one(1);  // a second one may have to wait for other work on the machine
  const auto g = compile([](const Tensor& x) { return exp(x) * 2.0 + x * x; });
  const Tensor x = ones({10000});
  for (int call = 1; call <= 1100; ++call) static_cast<void>(g(x));
  CHECK(same_bits(g(x), exp(x) * 2.0 + x * x));
  const SignatureReport report = g.explain().signatures.at(0);
  INFO(g.explain());
  CHECK(report.plan_calls + report.recorded_calls + report.eager_calls == report.calls);
  if (report.tier == Tier::eager) CHECK(report.reason.starts_with("measured faster eagerly"));
  if (!backend(Device{}).can_generate_code()) CHECK(report.tier == Tier::eager);
}
