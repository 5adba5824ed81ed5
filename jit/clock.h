// The clocks that decide when a trusted trace is recorded again, and what a Plan is worth.
#pragma once

#include "core/clock.h"

#include <cstdint>

namespace nitinol::jit {

/// Nanoseconds of a clock that never goes back. Cheap to ask and coarse: it moves every few
/// milliseconds.
[[nodiscard]] int64_t coarse_now();

/// precise_now() for what calls take, by which it is decided how later ones run. With FakeClock it
/// is that one's time, so that no busy machine decides.
[[nodiscard]] double call_now();

/// Seconds that this thread has computed: what else the machine does meanwhile does not count.
/// With FakeClock that one's time.
[[nodiscard]] double own_now();

/// For tests: all three stand still while this lives, but for advance(). Nests.
class FakeClock {
 public:
  FakeClock();
  ~FakeClock();
  FakeClock(const FakeClock&) = delete;
  FakeClock& operator=(const FakeClock&) = delete;

  void advance(int64_t nanoseconds);

 private:
  int64_t before_;
};

/// For tests: takes FakeClocks away while it lives.
class RealClock {
 public:
  RealClock();
  ~RealClock();
  RealClock(const RealClock&) = delete;
  RealClock& operator=(const RealClock&) = delete;

 private:
  int64_t before_;
};

}  // namespace nitinol::jit
