// What the math functions share: the layout of floats, polynomials, signs.
#pragma once

#include "core/num.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

/// The parts that math functions are built from. T is float or double and says which format a lane
/// has, because an Expr does not know it at compile time.
namespace nitinol::math {

template <class T>
struct Format;
template <>
struct Format<float> {
  using U = uint32_t;
  using I = int32_t;
  static constexpr int mantissa = 23, bias = 127;
};
template <>
struct Format<double> {
  using U = uint64_t;
  using I = int64_t;
  static constexpr int mantissa = 52, bias = 1023;
};

template <class T>
using BitsOf = typename Format<T>::U;

template <class T>
inline constexpr BitsOf<T> one_bits = BitsOf<T>{Format<T>::bias} << Format<T>::mantissa;
template <class T>
inline constexpr BitsOf<T> infinity_bits =
    BitsOf<T>{2 * Format<T>::bias + 1} << Format<T>::mantissa;
template <class T>
inline constexpr BitsOf<T> sign_bit = BitsOf<T>{1} << (sizeof(T) * 8 - 1);

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();
template <class T>
inline constexpr T quiet_nan = std::numeric_limits<T>::quiet_NaN();

/// Adding it to |x| < 2^(mantissa-2) rounds x to an integer (ties to even), which then is in the
/// low bits of the sum: cheaper than an instruction to round and another to convert.
template <class T>
inline constexpr T round_magic = static_cast<T>(uint64_t{3} << (Format<T>::mantissa - 1));

/// c[0] + x (c[1] + x (c[2] + ...)), by fused multiply-adds.
template <Lane X, class T, std::size_t n>
constexpr X polynomial(X x, const std::array<T, n>& c) {
  X sum = constant<T>(x, c[n - 1]);
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    ((sum = fma(sum, x, c[n - 2 - k])), ...);
  }
  (std::make_index_sequence<n - 1>{});
  return sum;
}

/// The sign bit of x, alone.
template <class T, Lane X>
constexpr auto sign_of(X x) {
  return bitcast<BitsOf<T>>(x) & sign_bit<T>;
}

/// y with its sign flipped where the sign bit is set in `sign`.
template <class T, Lane X, Lane S>
constexpr X flip_sign(X y, S sign) {
  return bitcast<T>(bitcast<BitsOf<T>>(y) ^ sign);
}

/// |y| with the sign bit `sign`.
template <class T, Lane X, Lane S>
constexpr X set_sign(X y, S sign) {
  return bitcast<T>((bitcast<BitsOf<T>>(y) & ~sign_bit<T>) | sign);
}

/// min(x, high) and max(x, low) in one instruction each; NaN stays NaN.
template <Lane X, class T>
constexpr X at_most(X x, T high) {
  return select(constant<T>(x, high) < x, high, x);
}
template <Lane X, class T>
constexpr X at_least(X x, T low) {
  return select(x < low, low, x);
}

}  // namespace nitinol::math
