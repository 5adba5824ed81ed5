// The clock that decides when a trusted trace is recorded again.
#pragma once

#include "core/clock.h"

#include <cstdint>

namespace nitinol::jit {

/// Nanoseconds of a clock that never goes back. Cheap to ask and coarse: it moves every few
/// milliseconds.
[[nodiscard]] int64_t coarse_now();

/// precise_now() for times by which a Plan is compared with other calls: with FakeClock none
/// passes, so that no busy machine decides.
[[nodiscard]] double race_now();

/// Seconds that this thread has computed: what else the machine does meanwhile does not count.
[[nodiscard]] double own_now();

/// For tests: coarse_now() stands still while this lives, but for advance(), and race_now() for
/// good. Nests.
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
