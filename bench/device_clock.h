// DeviceClock: what a call takes of the host and of a device, apart.
#pragma once

#include "nitinol.h"

#include <cstdint>
#include <functional>

namespace nitinol::bench {

/// On a device whose work is queued, which the default one must be. Before the calls that are timed
/// it is given enough to do that all of them are queued behind it: the host's time is that of
/// asking, and the device goes from one call to the next without waiting for the host. What the
/// calls take of it is the difference between two waits, with them and without, so that no event of
/// a driver is needed, and another library can be timed in the same way.
class DeviceClock {
 public:
  explicit DeviceClock(bool is_quick);

  struct Times {
    double host_s = 0, device_s = 0;  ///< of one call: the medians of several rounds
  };
  [[nodiscard]] Times time(const std::function<void()>& call, int64_t most_calls) const;

  /// Bytes that the device's copies read and write in a second.
  [[nodiscard]] double copy_rate() const { return copied_bytes_ / copy_s_; }

 private:
  /// Seconds from asking for so many copies, and then the calls, to the end of all.
  double behind(int64_t copies, const std::function<void()>& call, int64_t calls) const;

  int rounds_;
  Tensor filler_;  ///< what is copied
  double copied_bytes_ = 0, copy_s_ = 0;
};

}  // namespace nitinol::bench
