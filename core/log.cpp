#include "core/log.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

namespace nitinol {

namespace {

void write_to_stderr(LogLevel level, std::string_view message) {
  const std::string line = fmt::format("nitinol {}: {}\n", name_of(level), message);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

LogLevel level_from_environment() {
  const char* text = std::getenv("NITINOL_LOG");
  if (text == nullptr) return LogLevel::warning;
  for (const LogLevel level : {LogLevel::debug, LogLevel::info, LogLevel::warning, LogLevel::off}) {
    if (name_of(level) == text) return level;
  }
  write_to_stderr(LogLevel::warning,
                  fmt::format("NITINOL_LOG={} is not debug, info, warning or off", text));
  return LogLevel::warning;
}

struct Log {
  std::atomic<LogLevel> level{level_from_environment()};
  std::recursive_mutex mutex;  // held while the sink runs, which may log itself
  std::shared_ptr<const LogSink> sink = std::make_shared<const LogSink>(write_to_stderr);
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
  Log& log = the_log();
  const std::scoped_lock lock(log.mutex);
  log.sink.swap(shared);
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

void log(LogLevel level, std::string_view message) noexcept {
  try {
    if (!is_logged(level)) return;
    Log& log = the_log();
    const std::scoped_lock lock(log.mutex);
    const auto sink = log.sink;  // kept alive: it may replace itself
    (*sink)(level, message);
  } catch (...) {  // NOLINT(bugprone-empty-catch): a log must not change what the program does
  }
}

}  // namespace nitinol
