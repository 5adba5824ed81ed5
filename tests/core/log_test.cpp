#include "core/log.h"

#include "core/fork.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

// Collects what is logged at or above a level, and restores the defaults.
class Collected {
 public:
  explicit Collected(LogLevel level) : saved_(log_level()) {
    set_log_level(level);
    set_log_sink([this](LogLevel at, std::string_view text) {
      lines.push_back(std::string(name_of(at)) + " " + std::string(text));
    });
  }
  ~Collected() {
    set_log_sink({});
    set_log_level(saved_);
  }
  Collected(const Collected&) = delete;
  Collected& operator=(const Collected&) = delete;

  std::vector<std::string> lines;

 private:
  LogLevel saved_;
};

}  // namespace

TEST_CASE("the log passes on what is at or above its level", "[core][log]") {
  const Collected collected(LogLevel::info);
  log(LogLevel::debug, "a");
  log(LogLevel::info, "b");
  log(LogLevel::warning, "c");
  CHECK(collected.lines == std::vector<std::string>{"info b", "warning c"});
  CHECK_FALSE(is_logged(LogLevel::debug));
  CHECK(is_logged(LogLevel::warning));
}

TEST_CASE("a log that is off says nothing", "[core][log]") {
  const Collected collected(LogLevel::off);
  log(LogLevel::warning, "a");
  log(LogLevel::off, "b");
  CHECK(collected.lines.empty());
}

TEST_CASE("a sink may throw or log without harm", "[core][log]") {
  Collected collected(LogLevel::info);
  set_log_sink([&collected](LogLevel level, std::string_view text) {
    collected.lines.emplace_back(text);
    if (level == LogLevel::warning) log(LogLevel::info, "from the sink");
    throw std::runtime_error("full");
  });
  log(LogLevel::warning, "a");
  CHECK(collected.lines == std::vector<std::string>{"a", "from the sink"});
}

TEST_CASE("threads log without overlapping calls of the sink", "[core][log]") {
  const Collected collected(LogLevel::info);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([] {
      for (int k = 0; k < 100; ++k) log(LogLevel::info, "x");
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(collected.lines.size() == 400);
}

TEST_CASE("a sink may wait for a lock that another thread holds while it logs", "[core][log]") {
  std::mutex users;  // such as an interpreter's global lock
  std::atomic<int> written = 0;
  std::atomic<bool> is_in_sink = false;
  set_log_sink([&](LogLevel, std::string_view) {
    is_in_sink = true;
    const std::scoped_lock lock(users);
    ++written;
  });
  std::thread other;
  {
    const std::scoped_lock lock(users);
    other = std::thread([] { log(LogLevel::warning, "first"); });
    while (!is_in_sink) std::this_thread::yield();
    log(LogLevel::warning, "second");  // would never return if the sink ran under a lock of ours
  }
  other.join();
  set_log_sink({});
  CHECK(written == 2);
}

TEST_CASE("when set_log_sink returns, the old sink is not running", "[core][log]") {
  std::atomic<bool> is_in_sink = false;
  std::atomic<bool> has_left = false;
  set_log_sink([&](LogLevel, std::string_view) {
    is_in_sink = true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    has_left = true;
  });
  std::thread other([] { log(LogLevel::warning, "slow"); });
  while (!is_in_sink) std::this_thread::yield();
  set_log_sink({});
  CHECK(has_left);
  other.join();
}

TEST_CASE("a sink may replace itself", "[core][log]") {
  int calls = 0;
  set_log_sink([&calls](LogLevel, std::string_view) {
    ++calls;
    set_log_sink([&calls](LogLevel, std::string_view) { calls += 10; });
  });
  log(LogLevel::warning, "a");
  log(LogLevel::warning, "b");
  set_log_sink({});
  CHECK(calls == 11);
}

TEST_CASE("what is logged where no fork may happen is passed on after that", "[core][log]") {
  std::string seen;
  set_log_sink([&seen](LogLevel, std::string_view text) {
    seen += text;
    if (NoFork::is_inside()) seen += " too early";
    if (text == "b") {  // a sink that logs
      const NoFork no_fork;
      log(LogLevel::warning, "c");
    }
  });
  {
    const NoFork outer;
    {
      const NoFork inner;
      log(LogLevel::warning, "a");
    }
    log(LogLevel::warning, "b");
    CHECK(seen.empty());
  }
  CHECK(seen == "abc");
  {
    const NoFork no_fork;
    log(LogLevel::warning, "d");
  }
  CHECK(seen == "abcd");
  set_log_sink({});
}
