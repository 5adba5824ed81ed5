// Where a tensor lives.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>

#pragma GCC visibility push(default)

namespace nitinol {

/// A device of one kind, by number. The host is Device{} (cpu, 0).
struct Device {
  enum class Kind : uint8_t { cpu, reference };
  Kind kind = Kind::cpu;
  int8_t index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu:0". (core/tensor.cpp)
[[nodiscard]] std::string describe(Device device);
/// Writes describe(device).
std::ostream& operator<<(std::ostream& stream, Device device);

}  // namespace nitinol

#pragma GCC visibility pop
