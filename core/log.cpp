#include "core/log.h"

#include "core/environment.h"
#include "core/fork.h"

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

namespace nitinol {

namespace {

void write_to_stderr(LogLevel level, std::string_view message) {
  const std::string line = fmt::format("nitinol {}: {}\n", name_of(level), message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

constexpr LogLevel levels[] = {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::off};

// Not environment_choice(), which would log that it cannot say how to log.
LogLevel level_from_environment() {
  const char* text = std::getenv("NITINOL_LOG");
  if (text == nullptr || *text == '\0') return LogLevel::warning;
  std::vector<std::string_view> names;
  for (const LogLevel level : levels) {
    if (name_of(level) == text) return level;
    names.push_back(name_of(level));
  }
  write_to_stderr(LogLevel::warning, meaningless("NITINOL_LOG", text, names));
  return LogLevel::warning;
}

struct Message {
  LogLevel level;
  std::string text;
};

// The sink is the user's code, and may wait for a lock that a thread holds which logs: so it runs
// without a lock of ours. Calls do not overlap all the same: the thread that finds nobody writing
// passes on its message and all that come meanwhile; the others leave theirs and go on.
class Log {
 public:
  std::atomic<LogLevel> level{level_from_environment()};

  void add(LogLevel at, std::string_view text) {
    std::unique_lock lock(mutex_);
    forget_other_process();
    if (NoFork::is_inside()) {
      if (waiting_.size() < most_waiting) waiting_.push_back({at, std::string(text)});
      is_deferred_.store(true, std::memory_order_relaxed);
      return;
    }
    if (writer_ == std::this_thread::get_id()) {  // a sink that logs
      const std::shared_ptr<const LogSink> sink = sink_;
      lock.unlock();
      (*sink)(at, text);
      return;
    }
    if (waiting_.size() == most_waiting) return;
    waiting_.push_back({at, std::string(text)});
    pass_on(lock);
  }

  void add_deferred() {
    if (!is_deferred_.load(std::memory_order_relaxed)) return;
    std::unique_lock lock(mutex_);
    pass_on(lock);
  }

  void replace(std::shared_ptr<const LogSink> sink) {
    std::unique_lock lock(mutex_);
    sink_.swap(sink);
    forget_other_process();
    if (writer_ == std::this_thread::get_id()) return;
    lock.unlock();
    running_.wait(sink.get());
  }

 private:
  static constexpr std::size_t most_waiting = 10'000;  // more are dropped

  /// All that waits, unless another thread is at it, or a sink of this one.
  void pass_on(std::unique_lock<ForkSafeMutex>& lock) {
    if (writer_ != std::thread::id()) return;
    writer_ = std::this_thread::get_id();
    is_deferred_.store(false, std::memory_order_relaxed);
    while (!waiting_.empty()) {
      const Message message = std::move(waiting_.front());
      waiting_.pop_front();
      std::shared_ptr<const LogSink> sink = sink_;  // kept alive: it may be replaced meanwhile
      running_ = sink.get();
      lock.unlock();
      try {
        (*sink)(message.level, message.text);
      } catch (...) {  // NOLINT(bugprone-empty-catch): a log must not change what the program does
      }
      sink.reset();
      lock.lock();
      running_ = nullptr;
      running_.notify_all();
    }
    writer_ = {};
  }

  /// After a fork: the thread that wrote is not here, unless it is the one that forked.
  void forget_other_process() {
    if (process_ == getpid()) return;
    process_ = getpid();
    if (writer_ == std::this_thread::get_id()) return;
    writer_ = {};
    waiting_.clear();
    running_ = nullptr;
  }

  ForkSafeMutex mutex_;
  pid_t process_ = getpid();
  std::thread::id writer_;
  std::deque<Message> waiting_;
  std::atomic<bool> is_deferred_ = false;  ///< some may wait for the end of a NoFork
  std::shared_ptr<const LogSink> sink_ = std::make_shared<const LogSink>(write_to_stderr);
  std::atomic<const LogSink*> running_ = nullptr;
};

// Never destroyed: other globals may log while the program ends.
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

}  // namespace

std::string_view name_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::off:
      return "off";
  }
  return "unknown";
}

void set_log_sink(LogSink sink) {
  auto shared = std::make_shared<const LogSink>(sink ? std::move(sink) : LogSink(write_to_stderr));
  the_log().replace(std::move(shared));
}

void set_log_level(LogLevel level) {
  the_log().level = level;
}

LogLevel log_level() {
  return the_log().level;
}

bool is_logged(LogLevel level) {
  return level != LogLevel::off && level >= the_log().level.load(std::memory_order_relaxed);
}

void log_deferred() noexcept {
  try {
    the_log().add_deferred();
  } catch (...) {  // NOLINT(bugprone-empty-catch): as log()
  }
}

void log(LogLevel level, std::string_view message) noexcept {
  try {
    if (!is_logged(level)) return;
    the_log().add(level, message);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log must not change what the program does
  }
}

}  // namespace nitinol
