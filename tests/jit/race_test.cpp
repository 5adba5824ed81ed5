// Which of a signature's Plan and its eager code is faster, and what follows.
#include "jit/race.h"

#include "core/backend.h"
#include "nitinol.h"
#include "tests/jit/calls.h"

#include <catch2/catch.hpp>

using namespace nitinol;

TEST_CASE("a Plan that is clearly slower than recordings is told from one that is not",
          "[jit][race]") {
  jit::Race race;
  for (int i = 0; i < 3; ++i) {
    race.plan_took(20e-6);
    race.recording_took(10e-6);
    CHECK_FALSE(race.verdict());  // too few to tell
  }
  race.plan_took(20e-6);
  race.recording_took(11e-6);
  REQUIRE(race.verdict());
  CHECK(*race.verdict() == "measured faster eagerly: 10 us a call, its Plan 20 us");
  race.plan_took(12e-6);  // the best time counts
  CHECK_FALSE(race.verdict());
}

TEST_CASE("without generated code an interpreted Plan makes way for eager loops", "[jit][race]") {
  const Threads one(1);  // a second one may have to wait for other work on the machine
  const auto g = compile([](const Tensor& x) { return exp(x) * 2.0 + x * x; });
  const Tensor x = ones({10000});
  for (int call = 1; call <= 100; ++call) static_cast<void>(g(x));
  const SignatureReport report = g.explain().signatures.at(0);
  INFO(g.explain());
  // With generated code either may win, and without there is no doubt.
  if (report.tier == Tier::eager) CHECK(report.reason.starts_with("measured faster eagerly"));
  CHECK((report.tier == Tier::eager || backend(Device{}).can_generate_code()));
}
