// Shifts by any count: the instructions take it modulo the width.
#pragma once

#include "core/math/compare.h"

namespace nitinol {
namespace math {

/// Whether 0 <= count < width. A negative one, which a mask of the width's bits leaves equal as
/// little as a large one does, needs no comparison of its own.
template <Lane X>
constexpr auto is_shift(X count) {
  int width = 0;
  if constexpr (std::is_same_v<Element<X>, void>)
    width = static_cast<int>(8 * size_of(count.type));
  else
    width = static_cast<int>(8 * sizeof(Element<X>));
  return (count & small_constant(count, width - 1)) == count;
}

}  // namespace math

/// a * 2^count modulo 2^width; 0 for a negative count and from the width on.
template <Lane X>
constexpr X shift_left(X a, X count) {
  return select(math::is_shift(count), a << count, math::small_constant(a, 0));
}

/// floor(a / 2^count); 0, or -1 if a is negative, for a negative count and from the width on.
template <Lane X>
constexpr X shift_right(X a, X count) {
  const X zero = math::small_constant(a, 0);
  return select(math::is_shift(count), a >> count, select(a < zero, ~zero, zero));
}

}  // namespace nitinol
