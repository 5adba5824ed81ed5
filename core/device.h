// Where a tensor lives.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// A device of one kind, by number. The host is Device{} (cpu, 0).
struct Device {
  enum class Kind : uint8_t { cpu, reference, cuda };
  Kind kind = Kind::cpu;
  int8_t index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu:0".
[[nodiscard]] std::string describe(Device device);
/// Writes describe(device).
std::ostream& operator<<(std::ostream& stream, Device device);
/// What describe() wrote; without a number the first of its kind. Nothing if the text means no
/// device. Whether there is such a device is another question.
[[nodiscard]] std::optional<Device> device_named(std::string_view text);

/// A device of this machine, or one that is not there.
struct DeviceInfo {
  Device device;
  std::string description;  ///< what it is, or for what
  std::string missing;      ///< why it cannot be used; empty if it can
};

/// All devices that this library knows of, the host first. (backends/backends.cpp)
[[nodiscard]] std::vector<DeviceInfo> devices();

/// Where tensors are made that come from numbers and host data alone: the host unless set. Tensors
/// made like another one, and results of operations, lie where their operands lie.
/// (backends/backends.cpp)
[[nodiscard]] Device default_device();
/// For all threads, from now on. Throws Error(device), with the reason, if it cannot be used.
void set_default_device(Device device);
/// Waits until the device has done all that was asked of it, as before looking at a clock; the host
/// has always done it. Throws Error(device) if it cannot be used, and what a launch or a call's
/// check failed with.
void synchronize(Device device = default_device());

}  // namespace nitinol

#pragma GCC visibility pop
