// The trace that is made of a Profile, and that of a whole process.
#include "jit/profile.h"
#include "nitinol.h"
#include "tests/in_child.h"
#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <sys/resource.h>
#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace nitinol::profile_trace_test {

std::string text_of(const std::filesystem::path& file) {
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}

TEST_CASE("the trace is one of the Trace Event Format", "[jit][profile]") {
  const auto f = compile([](const Tensor& x) { return exp(x) * 2; },
                         {.name = "a \"quoted\" name\n", .check = Check::never});
  const Variable w = parameter(ones({1000}));
  Profile profile;
  for (int i = 0; i < 4; ++i) static_cast<void>(f(ones({1000})));
  sum(w.get() * w.get()).backward();
  profile.stop();
  const ProfileReport report = profile.report();
  const nlohmann::json trace = nlohmann::json::parse(report.to_json());
  std::map<std::string, int> phases;
  std::map<int, std::pair<double, double>> flows;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    const std::string phase = event.at("ph");
    ++phases[phase];
    CHECK(event.at("pid") == 1);
    if (phase == "X") {
      CHECK(event.at("dur").get<double>() >= 0);
      CHECK(event.at("args").at("tier").is_string());
    }
    if (phase == "s") flows[event.at("id")].first = event.at("ts");
    if (phase == "f") flows[event.at("id")].second = event.at("ts");
  }
  const auto on_device = std::ranges::count_if(
      report.events, [](const ProfileEvent& event) { return event.device_s > 0; });
  CHECK(phases["X"] == static_cast<int>(report.events.size()) + on_device);
  CHECK(phases["C"] > 0);
  CHECK(phases["s"] == 2);  // mul and sum
  CHECK(phases["f"] == 2);
  for (const auto& [id, times] : flows) CHECK(times.first < times.second);
  const auto is_named = [](const nlohmann::json& event) {
    return event.at("name") == "a \"quoted\" name\n";
  };
  CHECK(std::ranges::any_of(trace.at("traceEvents"), is_named));
}

TEST_CASE("events of a trace that touch do not overlap, in whole nanoseconds", "[jit][profile]") {
  const auto f =
      compile([](const Tensor& x) { return matmul(exp(x) * 2, x) + 1; }, {.check = Check::never});
  const Tensor x = ones({4, 4}, f32, default_device());
  Profile profile({.lines = false});
  for (int i = 0; i < 400; ++i) f(x);
  profile.stop();
  const nlohmann::json trace = nlohmann::json::parse(profile.report().to_json());
  double (*const ways[])(double) = {std::trunc, std::round};  // of readers, to whole nanoseconds
  for (const auto way : ways) {
    std::map<int, std::vector<std::pair<double, double>>> threads;  // begin, and minus the length
    for (const nlohmann::json& event : trace.at("traceEvents")) {
      if (event.at("ph") != "X") continue;
      const double begin = event.at("ts"), length = event.at("dur");
      threads[event.at("tid")].emplace_back(way(begin * 1000), -way(length * 1000));
    }
    CHECK(!threads.contains(0));  // which is the process itself
    for (auto& [thread, events] : threads) {
      std::ranges::sort(events);
      std::vector<double> ends;  // of events that contain the next
      for (const auto& [begin, downwards] : events) {
        while (!ends.empty() && ends.back() <= begin) ends.pop_back();
        const double end = begin - downwards;
        if (!ends.empty()) CHECK(end <= ends.back());
        ends.push_back(end);
      }
    }
  }
}

TEST_CASE("a trace is saved whole or not at all", "[jit][profile][host]") {
  const TemporaryFolder folder;
  Profile profile;
  for (int i = 0; i < 100; ++i) static_cast<void>(exp(ones({3})));
  profile.stop();
  profile.save(folder / "trace.json");
  CHECK(nlohmann::json::parse(text_of(folder / "trace.json")).contains("traceEvents"));
  CHECK_THROWS_AS(profile.save(folder / "missing/trace.json"), Error);
  const int result = in_child([&] {  // a full disk
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &limit);
    try {
      profile.save(folder / "other.json");
    } catch (const Error& error) {
      return error.kind() == ErrorKind::io ? 0 : 2;
    }
    return 1;
  });
  CHECK(result == 0);
  CHECK(folder.names() == std::vector<std::string>{"trace.json"});
}

TEST_CASE("work for a profile of the process", "[.profile-work][host]") {
  static_cast<void>(sin(ones({3})));
  static_cast<void>(in_child([] {
    static_cast<void>(log(ones({3})));
    std::exit(0);  // NOLINT(concurrency-mt-unsafe): what a child may do
    return 0;
  }));
  // The child has left the file to this process.
  const char* const file = std::getenv("NITINOL_PROFILE");
  if (file != nullptr && std::filesystem::exists(file))
    CHECK(text_of(file).find("sin") == std::string::npos);
  static_cast<void>(exp(ones({3})));
}

TEST_CASE("NITINOL_PROFILE is a profile of the whole process", "[jit][profile][host]") {
  const TemporaryFolder folder;
  const std::string file = folder / "trace.json";
  const Run run = run_self("NITINOL_PROFILE='" + file + "'", "[.profile-work]");
  CHECK(run.status == 0);
  CHECK(run.output.find("NITINOL_PROFILE") == std::string::npos);
  const nlohmann::json trace = nlohmann::json::parse(text_of(file));
  int own = 0, of_child = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    own += event.at("name") == "exp" ? 1 : 0;
    of_child += event.at("name") == "log" ? 1 : 0;
  }
  CHECK(own == 1);
  CHECK(of_child == 0);
  const Run refused = run_self("NITINOL_PROFILE='" + file + "/x.json'", "[.profile-work]");
  CHECK(refused.status == 0);
  CHECK(refused.output.find("NITINOL_PROFILE is ignored") != std::string::npos);
}

}  // namespace nitinol::profile_trace_test
