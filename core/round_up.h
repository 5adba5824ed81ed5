// Rounding a number of bytes up to a whole number of units.
#pragma once

#include <cstddef>

namespace nitinol {

/// The least multiple of `unit` that is at least `bytes`.
[[nodiscard]] constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace nitinol
