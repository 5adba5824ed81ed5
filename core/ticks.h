// ticks(): the time, as cheaply as it can be had, to be made nanoseconds of later.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

/// The CPU's counter if the kernel takes the time from it, too, so that it counts at one rate and
/// on all cores alike; else nanoseconds of the steady clock. 10 ns instead of 24 (AMD EPYC, 28
/// November 2026).
[[nodiscard]] int64_t ticks() noexcept;

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
