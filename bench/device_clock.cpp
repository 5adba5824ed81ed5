#include "bench/device_clock.h"

#include "bench/timer.h"
#include "core/device.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace nitinol::bench {

DeviceClock::DeviceClock(bool is_quick) : rounds_(is_quick ? 1 : 5) {
  const int64_t n = is_quick ? 1 << 10 : 1 << 26;  // 256 MiB in f32: no cache has it
  filler_ = copy(ones({n}));
  copied_bytes_ = 8.0 * static_cast<double>(n);
  behind(4, {}, 0);
  copy_s_ = std::numeric_limits<double>::infinity();
  for (int round = 0; round < rounds_; ++round)
    copy_s_ = std::min(copy_s_, (behind(24, {}, 0) - behind(4, {}, 0)) / 20);
  copy_s_ = std::max(copy_s_, 1e-9);
}

double DeviceClock::behind(int64_t copies, const std::function<void()>& call, int64_t calls) const {
  const double start = now();
  for (int64_t i = 0; i < copies; ++i) static_cast<void>(copy(filler_));
  for (int64_t i = 0; i < calls; ++i) call();
  synchronize();
  return now() - start;
}

DeviceClock::Times DeviceClock::time(const std::function<void()>& call, int64_t most_calls) const {
  // More launches than the driver queues would make the host wait.
  const int64_t calls = std::clamp<int64_t>(most_calls, 1, 50);
  std::vector<double> host, device;
  int64_t copies = 1;
  for (int round = -1; round < rounds_; ++round) {
    double start = now();
    for (int64_t i = 0; i < calls; ++i) call();
    const double asking = now() - start;
    synchronize();
    if (round < 0) {  // which also warms all of it up
      const double wanted = std::min(asking * 1.5, 0.2);
      copies = 1 + static_cast<int64_t>(std::min(std::ceil(wanted / copy_s_), 2000.0));
      continue;
    }
    host.push_back(asking / static_cast<double>(calls));
    const double with = behind(copies, call, calls), without = behind(copies, {}, 0);
    device.push_back((with - without) / static_cast<double>(calls));
  }
  return {.host_s = median_of(host), .device_s = std::max(median_of(device), 0.0)};
}

}  // namespace nitinol::bench
