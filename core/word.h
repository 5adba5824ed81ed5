// Elements of any dtype as words, for code that only moves them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nitinol {

/// Calls f with a value of the unsigned type that has `bytes` bytes: 1, 2, 4 or 8.
template <class F>
auto with_word(std::size_t bytes, F f) {
  switch (bytes) {
    case 1:
      return f(uint8_t{});
    case 2:
      return f(uint16_t{});
    case 4:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

}  // namespace nitinol
