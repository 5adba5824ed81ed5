// DeviceMark: when a device that runs later has come to some point of its work.
#pragma once

#pragma GCC visibility push(default)

namespace nitinol {

class DeviceMark {
 public:
  virtual ~DeviceMark() = default;
  /// Seconds from `earlier`, one of the same device, to this one, by the device's clock. Waits
  /// until the device has come here. Throws what the device has failed with.
  [[nodiscard]] virtual double seconds_since(const DeviceMark& earlier) const = 0;
};

}  // namespace nitinol

#pragma GCC visibility pop
