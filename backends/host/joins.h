// How each reduction joins two values: scalars, written so that loops over them vectorise.
#pragma once

#include "core/native.h"
#include "core/reduction.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace nitinol::host {

/// What an array of T holds: conditions are bytes, 0 or 1.
template <class T>
using Element = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

constexpr bool is_arg(Combine combine) {
  return combine == Combine::arg_maximum || combine == Combine::arg_minimum;
}

template <class T>
constexpr T lowest_of() {
  if constexpr (native::Float<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::min();
}
template <class T>
constexpr T highest_of() {
  if constexpr (native::Float<T>)
    return std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::max();
}

/// True if the pair means something.
template <Combine c, class T>
inline constexpr bool is_joinable = std::is_same_v<T, bool>
                                        ? (c == Combine::logical_or || c == Combine::logical_and ||
                                           c == Combine::maximum || c == Combine::minimum ||
                                           is_arg(c))
                                        : (c != Combine::logical_or && c != Combine::logical_and);

/// Joined with x it gives x, bit for bit.
template <Combine c, class T>
constexpr Element<T> neutral_of() {
  constexpr bool is_largest =
      c == Combine::minimum || c == Combine::arg_minimum || c == Combine::logical_and;
  if constexpr (std::is_same_v<T, bool>)
    return is_largest ? 1 : 0;
  else if constexpr (c == Combine::add && native::Float<T>)
    return static_cast<T>(-0.0);
  else if constexpr (c == Combine::add)
    return T{0};
  else if constexpr (c == Combine::multiply)
    return T{1};
  else
    return is_largest ? highest_of<T>() : lowest_of<T>();
}

/// The larger (smaller); NaN if either is NaN; -0 < +0: equal values have equal bits but for zeros.
template <bool largest, class T>
inline T extreme(T a, T b) {
  if constexpr (native::Float<T>) {
    using U = native::Bits<T>;
    const U x = std::bit_cast<U>(a), y = std::bit_cast<U>(b);
    const T equal = std::bit_cast<T>(largest ? x & y : x | y);
    const bool takes_a = largest ? a > b : a < b;
    const T ordered = a == b ? equal : (takes_a ? a : b);
    return a != a ? a : ordered;
  } else {
    return (largest ? a > b : a < b) ? a : b;
  }
}

template <Combine c, class T>
inline Element<T> join(Element<T> a, Element<T> b) {
  if constexpr (std::is_same_v<T, bool>) {
    constexpr bool is_or = c == Combine::logical_or || c == Combine::maximum;
    return static_cast<uint8_t>(is_or ? a | b : a & b);
  } else if constexpr (c == Combine::add) {
    return native::add(a, b);
  } else if constexpr (c == Combine::multiply) {
    return native::mul(a, b);
  } else {
    return extreme<c == Combine::maximum>(a, b);
  }
}

/// True if (b, at q) beats (a, at p): NaN beats numbers, zeros are equal, and of equals the first
/// position wins. A total order, so the result does not depend on the order of joining.
template <Combine c, class T, class P>
inline bool beats(T b, P q, T a, P p) {
  const bool is_better = c == Combine::arg_maximum ? b > a : b < a;
  if constexpr (native::Float<T>) {
    const bool a_nan = a != a, b_nan = b != b;
    const bool same = (a == b) | (a_nan & b_nan);
    return (is_better & !a_nan) | (b_nan & !a_nan) | (same & (q < p));
  } else {
    return is_better | ((a == b) & (q < p));
  }
}

/// Where no element is yet: behind all positions.
inline constexpr int64_t no_position = std::numeric_limits<int64_t>::max();

}  // namespace nitinol::host
