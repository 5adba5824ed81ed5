// What a MetricLog leaves in its folder. bindings/python/tests/test_metric_log.py has TensorBoard
// read it.
#include "nitinol.h"
#include "nn/event_file.h"
#include "tests/in_child.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <sys/resource.h>
#include <thread>
#include <vector>

namespace nitinol::metric_log_test {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<Json> lines_of(const fs::path& folder) {
  std::vector<Json> lines;
  std::ifstream file(folder / "metrics.jsonl");
  for (std::string line; std::getline(file, line);) lines.push_back(Json::parse(line));
  return lines;
}

std::vector<std::string> event_files(const fs::path& folder) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("events.out.tfevents."))
      found.push_back(entry.path());
  }
  return found;
}

/// Warnings while it lives.
struct Warnings {
  std::string text;
  Warnings() {
    set_log_sink([this](LogLevel, std::string_view line) { text += std::string(line) + "\n"; });
  }
  ~Warnings() { set_log_sink({}); }
  Warnings(const Warnings&) = delete;
  Warnings& operator=(const Warnings&) = delete;
};

TEST_CASE("values of one step are one line", "[nn][metric_log]") {
  const test::TemporaryFolder folder;
  const fs::path path = folder / "a/b";
  {
    nn::MetricLog log(path);
    CHECK(log.folder() == path);
    log.add("loss", tensor({0.5F}), 0);
    log.add("accuracy", 0.125, 0);
    log.add("count", tensor(int64_t{7}), 1);
    log.add("count", 8, 1);  // again: a line of its own
    log.add("bad", std::nan(""), 2);
    log.add("worse", -INFINITY, 2);
    log.add_text("note", "a \"b\"\n\xFF", 3);
    log.add_histogram("weights", arange(10), 3);
    CHECK(lines_of(path).empty());
  }
  std::vector<Json> lines = lines_of(path);
  REQUIRE(lines.size() == 5);
  for (Json& line : lines) {
    CHECK(line["time"].get<double>() > 1.7e9);
    line.erase("time");
  }
  CHECK(lines[0] == Json{{"step", 0}, {"loss", 0.5}, {"accuracy", 0.125}});
  CHECK(lines[1] == Json{{"step", 1}, {"count", 7}});
  CHECK(lines[2] == Json{{"step", 1}, {"count", 8}});
  CHECK(lines[3] == Json{{"step", 2}, {"bad", nullptr}, {"worse", nullptr}});
  CHECK(lines[4] == Json{{"step", 3}, {"note", "a \"b\"\n\xEF\xBF\xBD"}});
  const std::vector<std::string> events = event_files(path);
  REQUIRE(events.size() == 1);
  const std::string written = contents(events[0]);
  CHECK(written.find("brain.Event:2") != std::string::npos);
  for (const char* name : {"loss", "accuracy", "count", "bad", "worse", "note", "weights"})
    CHECK(written.find(name) != std::string::npos);
}

TEST_CASE("flush() writes, and so do time and many values", "[nn][metric_log]") {
  const test::TemporaryFolder folder;
  nn::MetricLog log(folder / "a");
  log.add("loss", 1.0, 0);
  CHECK(lines_of(folder / "a").empty());
  log.flush();
  CHECK(lines_of(folder / "a").size() == 1);
  for (int i = 1; i <= 1000; ++i) log.add("loss", 1.0, i);
  CHECK(lines_of(folder / "a").size() == 1001);
  nn::MetricLog at_once(folder / "b", {.flush_seconds = 0});
  at_once.add("loss", 1.0, 0);
  CHECK(lines_of(folder / "b").size() == 1);
}

TEST_CASE("a tensor is read when it is written, without its tape", "[nn][metric_log]") {
  const test::TemporaryFolder folder;
  nn::MetricLog log(folder / "a");
  const Variable weight = parameter(ones({3}));
  const std::size_t before = memory_statistics().in_use;
  {
    const Tensor large = sum(reshape(weight * ones({1000, 3}), {-1}));
    log.add("loss", large, 0);
  }
  CHECK(memory_statistics().in_use < before + 4096);  // of 12,000 bytes that the tape had kept
  log.flush();
  CHECK(lines_of(folder / "a")[0]["loss"] == 3000);
}

TEST_CASE("a log inside a compiled function has each call", "[nn][metric_log]") {
  const test::TemporaryFolder folder;
  {
    nn::MetricLog log(folder / "a");
    int64_t step = 0;
    const auto f = compile([&](const Tensor& x) {
      const Tensor y = sum(x);
      log.add("sum", y, step++);
      return y * 2;
    });
    for (int i = 0; i < 8; ++i) f(full({3}, static_cast<float>(i)));
  }
  const std::vector<Json> lines = lines_of(folder / "a");
  REQUIRE(lines.size() == 8);
  for (int i = 0; i < 8; ++i) CHECK(lines[static_cast<std::size_t>(i)]["sum"] == 3 * i);
}

TEST_CASE("a log goes on in a folder that has one", "[nn][metric_log]") {
  const test::TemporaryFolder folder;
  for (int64_t run = 0; run < 3; ++run) {
    if (run == 2)  // as after a crash in the middle of a line
      std::ofstream(folder / "metrics.jsonl", std::ios::app) << "{\"step\":1,\"lo";
    nn::MetricLog log(folder / ".");
    log.add("loss", 1.0, run);
  }
  CHECK(event_files(folder / ".").size() == 3);
  std::ifstream file(folder / "metrics.jsonl");
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  REQUIRE(lines.size() == 4);
  CHECK(lines[2] == "{\"step\":1,\"lo");
  CHECK(Json::parse(lines[3])["step"] == 2);
}

TEST_CASE("a log says what it cannot be told", "[nn][metric_log]") {
  const test::TemporaryFolder folder;
  nn::MetricLog log(folder / "a");
  for (const char* name : {"", "a\nb", "step", "time", "\x7F"})
    CHECK_THROWS_WITH(log.add(name, 1.0, 0), Catch::Contains("MetricLog::add: the name"));
  CHECK_THROWS_WITH(log.add("a", 1.0, -1), Catch::Contains("step") && Catch::Contains("got -1"));
  CHECK_THROWS_WITH(log.add("a", ones({2}), 0), Catch::Contains("one element, got float32[2]"));
  CHECK_THROWS_WITH(nn::MetricLog(folder / "b", {.flush_seconds = -1}),
                    Catch::Contains("flush_seconds"));
  log.flush();
  CHECK(lines_of(folder / "a").empty());
  std::ofstream(folder / "file") << "x";
  CHECK_THROWS_AS(nn::MetricLog(folder / "file"), Error);
  CHECK_THROWS_WITH(nn::MetricLog(folder / "file/b"), Catch::Contains("cannot be made"));
  CHECK_THROWS_WITH(nn::MetricLog("/proc/self"), Catch::Contains("cannot be opened"));
}

TEST_CASE("training goes on when the disk is full", "[nn][metric_log]") {
  const test::TemporaryFolder folder;
  const auto run = [&] {
    std::signal(SIGXFSZ, SIG_IGN);
    Warnings warnings;
    {
      nn::MetricLog log(folder / "a");
      log.add("loss", 1.0, 0);
      log.flush();
      rlimit limit = {};
      getrlimit(RLIMIT_FSIZE, &limit);
      limit.rlim_cur = 150;  // the next record begins in it, and does not end
      setrlimit(RLIMIT_FSIZE, &limit);
      for (int i = 1; i < 4; ++i) {
        log.add("loss", 1.0, i);
        log.add("rate", 1.0, i);
        log.flush();
      }
      if (log.lost() != 6) return 1;
      limit.rlim_cur = limit.rlim_max;
      setrlimit(RLIMIT_FSIZE, &limit);
      log.add("loss", 1.0, 9);
    }
    const bool says = warnings.text.find("2 values are lost") != std::string::npos &&
                      warnings.text.find("File too large") != std::string::npos &&
                      warnings.text.find("6 values were lost") != std::string::npos;
    if (!says) return 2;
    return std::ranges::count(warnings.text, '\n') == 2 ? 0 : 3;
  };
  CHECK(test::in_child(run) == 0);
  const std::vector<Json> lines = lines_of(folder / "a");
  REQUIRE(lines.size() == 2);
  CHECK(lines[1]["step"] == 9);
  // Half a record would hide those behind it.
  const std::string version = nn::events::version_record(1);
  const std::size_t one = nn::events::number_record(1, 1, "loss", 1).size();
  CHECK(contents(event_files(folder / "a").at(0)).size() == version.size() + 2 * one);
}

TEST_CASE("the child of a fork has a file of its own", "[nn][metric_log]") {
  const test::TemporaryFolder folder;
  {
    nn::MetricLog log(folder / "a");
    log.add("parent", 1.0, 0);
    CHECK(test::in_child([&] {
            log.add("child", 1.0, 0);
            log.flush();
            return 0;
          }) == 0);
  }
  CHECK(event_files(folder / "a").size() == 2);
  std::map<std::string, int> seen;
  for (const Json& line : lines_of(folder / "a")) {
    for (const auto& [name, value] : line.items()) ++seen[name];
  }
  CHECK(seen["parent"] == 1);
  CHECK(seen["child"] == 1);
}

TEST_CASE("threads may add to one log", "[nn][metric_log]") {
  const test::TemporaryFolder folder;
  {
    nn::MetricLog log(folder / "a", {.flush_seconds = 0.001});
    std::vector<std::thread> threads;
    for (const char* name : {"a", "b", "c"}) {
      threads.emplace_back([&log, name] {
        for (int i = 0; i < 3000; ++i) log.add(name, i, i);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::map<std::string, int> seen;
  for (const Json& line : lines_of(folder / "a")) {
    for (const char* name : {"a", "b", "c"}) {
      if (line.contains(name) && line[name] == line["step"]) ++seen[name];
    }
  }
  CHECK(seen == std::map<std::string, int>{{"a", 3000}, {"b", 3000}, {"c", 3000}});
}

}  // namespace nitinol::metric_log_test
