// ticks(): the time, as cheaply as it can be had, to be made nanoseconds of later.
#pragma once

#include <atomic>
#include <cstdint>
#if defined(__x86_64__)
#  include <x86intrin.h>
#endif

#pragma GCC visibility push(default)

namespace nitinol {

/// Whether ticks() has found out that the CPU's counter tells the time.
extern constinit std::atomic<bool> ticks_are_counted;
/// The first time, and where it does not.
[[nodiscard]] int64_t ticks_otherwise() noexcept;

/// The CPU's counter if the kernel takes the time from it, too, so that it counts at one rate and
/// on all cores alike; else nanoseconds of the steady clock. 10 ns instead of 24 (AMD EPYC, 28
/// November 2026).
[[nodiscard]] inline int64_t ticks() noexcept {
#if defined(__x86_64__)
  if (ticks_are_counted.load(std::memory_order_relaxed)) [[likely]]
    return static_cast<int64_t>(__rdtsc());
#endif
  return ticks_otherwise();
}

/// Nanoseconds of the steady clock out of ticks: by how far both have come since the process had
/// its first TickScale, so that each is right to some 50 ns.
class TickScale {
 public:
  TickScale() noexcept;
  [[nodiscard]] int64_t nanoseconds(int64_t ticks) const noexcept;

 private:
  double rate_ = 1;  ///< nanoseconds a tick
};

}  // namespace nitinol

#pragma GCC visibility pop
