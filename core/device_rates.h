// DeviceRates: what a device does at most, as measured once, for profiles.
#pragma once

#include <cstddef>
#include <vector>

namespace nitinol {

struct DeviceRates {
  /// A copy, repeated: what lies in a cache is faster.
  struct Copy {
    double bytes = 0;        ///< read and written
    double bytes_per_s = 0;  ///< of both
  };
  std::vector<Copy> copies;     ///< from few bytes to many; empty: not known
  double operations_per_s = 0;  ///< f32 additions and multiplications; 0: not known

  /// Seconds that moving so many bytes takes at least, at a rate between those of the two copies
  /// that are next in size.
  [[nodiscard]] double move_s(double bytes) const {
    if (copies.empty()) return 0;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      const Copy& larger = copies[i];
      if (bytes > larger.bytes) continue;
      const Copy& smaller = copies[i > 0 ? i - 1 : 0];
      const double part = i > 0 ? (bytes - smaller.bytes) / (larger.bytes - smaller.bytes) : 0;
      return bytes / (smaller.bytes_per_s + part * (larger.bytes_per_s - smaller.bytes_per_s));
    }
    return bytes / copies.back().bytes_per_s;
  }
  /// And so many operations.
  [[nodiscard]] double compute_s(double operations) const {
    return operations_per_s > 0 ? operations / operations_per_s : 0;
  }
};

}  // namespace nitinol
