#include "core/ticks.h"

#include <chrono>
#include <cmath>
#include <fstream>
#include <string>

namespace nitinol {
namespace {

int64_t steady_ns() noexcept {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

/// The kernel has looked whether the counter stands still or differs between cores.
[[maybe_unused]] bool has_counter() noexcept {
  try {
    std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    std::string name;
    return file >> name && name == "tsc";
  } catch (...) {
    return false;
  }
}

/// One time by both clocks.
struct Moment {
  int64_t ticks = 0, time_ns = 0;
};
Moment moment_now() noexcept {
  Moment best;
  int64_t least = INT64_MAX;
  for (int i = 0; i < 5; ++i) {  // one of them without an interrupt in between
    const int64_t before = ticks(), time_ns = steady_ns(), took = ticks() - before;
    if (took >= least) continue;
    least = took;
    best = {before + took / 2, time_ns};
  }
  return best;
}

const Moment& first_moment() noexcept {
  static const Moment pair = moment_now();
  return pair;
}

}  // namespace

constinit std::atomic<bool> ticks_are_counted = false;

int64_t ticks_otherwise() noexcept {
#if defined(__x86_64__)
  static const bool counts_time = has_counter();
  ticks_are_counted.store(counts_time, std::memory_order_relaxed);
  if (counts_time) return static_cast<int64_t>(__rdtsc());
#endif
  return steady_ns();
}

TickScale::TickScale() noexcept {
  const Moment first = first_moment(), now = moment_now();
  if (now.ticks > first.ticks) {
    rate_ = static_cast<double>(now.time_ns - first.time_ns) /
            static_cast<double>(now.ticks - first.ticks);
  }
}

int64_t TickScale::nanoseconds(int64_t ticks) const noexcept {
  const Moment& first = first_moment();
  return first.time_ns + std::llround(static_cast<double>(ticks - first.ticks) * rate_);
}

}  // namespace nitinol
