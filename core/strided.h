// Elements that lie apart in memory, as views see them, on the host.
#pragma once

#include "core/shape.h"

#include <cstddef>
#include <cstdint>

namespace nitinol {

/// Elements before and after the first one that a view looks at, which has some.
struct Extent {
  int64_t before = 0;
  int64_t after = 0;
  [[nodiscard]] int64_t count() const { return before + 1 + after; }
};
[[nodiscard]] Extent extent_of(const Shape& shape, const Strides& strides);

/// Copies elements of `size` bytes to `to`, in row-major order. `first`: the one at index 0.
void copy_elements(const Shape& shape, const Strides& strides, std::size_t size,
                   const std::byte* first, std::byte* to);

}  // namespace nitinol
