// Profiles of work on a GPU: the device's time beside the host's. By the fake driver, by whose
// clock each piece of work takes a millisecond. In ctest's cuda.fake.calls.
#include "jit/profile.h"
#include "nitinol.h"
#include "tests/cuda/using_fake.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string>

using namespace nitinol;
using namespace nitinol::test;

namespace nitinol::device_times_test {

TEST_CASE("steps and ops on a GPU have its time", "[cuda][profile]") {
  if (!fake()) return;
  const auto f = compile([](const Tensor& x) { return exp(x) * 2 + x; },
                         {.name = "model", .check = Check::never});
  const Tensor x = ones({1000}, f32, gpu);
  for (int i = 0; i < 3; ++i) static_cast<void>(f(x));
  synchronize(gpu);
  Profile profile;
  static_cast<void>(f(x));
  static_cast<void>(exp(x));
  profile.stop();
  const ProfileReport report = profile.report();
  int steps = 0, ops = 0;
  for (const ProfileEvent& event : report.events) {
    const EventKind kind = report.labels[event.label].kind;
    if (kind == EventKind::call) CHECK(event.device_s == 0);
    if (kind != EventKind::kernel && kind != EventKind::op) continue;
    (kind == EventKind::op ? ops : steps) += 1;
    INFO(report.labels[event.label].name);
    CHECK(event.device == gpu);
    CHECK(event.device_s == Approx(1e-3));
    CHECK(event.device_begin_s >= 0);
    CHECK(report.labels[event.label].bound_s > 0);
  }
  CHECK(steps == 1);
  CHECK(ops == 1);
  CHECK(report.table().find(" device ") != std::string::npos);
  const nlohmann::json trace = nlohmann::json::parse(report.to_json());
  const auto is_track = [](const nlohmann::json& event) {
    return event.at("name") == "thread_name" && event.at("args").at("name") == describe(gpu);
  };
  const auto& events = trace.at("traceEvents");
  const auto track = std::ranges::find_if(events, is_track);
  REQUIRE(track != events.end());
  CHECK(std::ranges::count_if(events, [&](const nlohmann::json& event) {
          return event.at("ph") == "X" && event.at("tid") == track->at("tid");
        }) == 2);
}

TEST_CASE("a profile has a GPU's bound: that of copies in its memory", "[cuda][profile]") {
  if (!fake()) return;
  // A copy of 4 MiB takes a millisecond, as all does there: this reads and writes a quarter of its
  // bytes in the same time.
  const Tensor x = ones({1 << 18}, f32, gpu);
  const auto f = compile([](const Tensor& v) { return exp(v) * 2 + v; },
                         {.name = "model", .check = Check::never});
  for (int i = 0; i < 3; ++i) static_cast<void>(f(x));
  synchronize(gpu);
  const MemoryStatistics before = memory_statistics(gpu);
  Profile profile;
  static_cast<void>(f(x));
  profile.stop();
  const ProfileReport report = profile.report();
  const auto step = std::ranges::find(report.labels, EventKind::kernel, &ProfileLabel::kind);
  REQUIRE(step != report.labels.end());
  CHECK(step->bytes == 2 * 4 * (1 << 18));
  CHECK(step->bound_s == Approx(0.25e-3));
  CHECK(has(report.table(), " 25 %  kernel "));
  CHECK(has(report.to_json(), R"("of_bound":0.250)"));
  CHECK(f.explain().signatures.at(0).plan.bounds().at(0).move_s == Approx(0.25e-3));
  CHECK(memory_statistics(gpu).peak == before.peak);
}

TEST_CASE("a profile of the host alone asks a GPU nothing", "[cuda][profile]") {
  if (!has_gpu()) return;
  const Tensor x = ones({1000}, f32, Device{});
  Profile profile;
  static_cast<void>(exp(x));
  profile.stop();
  const ProfileReport report = profile.report();
  for (const ProfileEvent& event : report.events) CHECK(event.device_s == 0);
  CHECK(report.table().find(" device ") == std::string::npos);
}

}  // namespace nitinol::device_times_test
