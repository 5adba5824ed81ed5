// Where a tensor lives.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

/// A device of one kind, by number. The host is Device{} (cpu, 0).
struct Device {
  enum class Kind : uint8_t { cpu, reference };
  Kind kind = Kind::cpu;
  int8_t index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

}  // namespace nitinol

#pragma GCC visibility pop
