// maximum, minimum, copysign, sign and the tests for NaN and infinity.
#pragma once

#include "core/math/format.h"

namespace nitinol {
namespace math {

template <Lane X>
constexpr bool is_float_lane(X x) {
  if constexpr (std::is_same_v<Element<X>, void>) {
    return is_float(x.type);
  } else {
    static_cast<void>(x);
    return std::is_floating_point_v<Element<X>>;
  }
}

/// 0 or 1 as a lane of x's type.
template <Lane X>
constexpr X small_constant(X x, int value) {
  if constexpr (std::is_same_v<Element<X>, void>)
    return constant(x, x.type, value);
  else
    return constant<Element<X>>(x, value);
}

/// Where neither x < y nor y < x, `equal` if x == y, else NaN.
template <Lane X>
constexpr X unless_nan(X x, X y, X equal) {
  return select(x == y, equal, x + y);
}

template <class T, Lane X>
constexpr X maximum_of(X x, X y) {
  const X equal = bitcast<T>(bitcast<BitsOf<T>>(x) & bitcast<BitsOf<T>>(y));  // +0 over -0
  return select(y < x, x, select(x < y, y, unless_nan(x, y, equal)));
}
template <class T, Lane X>
constexpr X minimum_of(X x, X y) {
  const X equal = bitcast<T>(bitcast<BitsOf<T>>(x) | bitcast<BitsOf<T>>(y));  // -0 over +0
  return select(x < y, x, select(y < x, y, unless_nan(x, y, equal)));
}

template <class T, Lane X>
constexpr X copysign_of(X x, X y) {
  return set_sign<T>(x, sign_of<T>(select(y == y, y, constant<T>(y, 0))));
}

template <class T, Lane X>
constexpr X nextafter_of(X x, X y) {
  const auto bits = bitcast<BitsOf<T>>(x);
  const auto is_away = !((y > x) ^ (x > T{0}));  // from 0
  const X next = bitcast<T>(select(is_away, bits + BitsOf<T>{1}, bits - BitsOf<T>{1}));
  const X least = set_sign<T>(constant<T>(x, std::numeric_limits<T>::denorm_min()), sign_of<T>(y));
  const X moved = select(x == T{0}, least, next);
  return select(x < y, moved, select(y < x, moved, unless_nan(x, y, y)));
}

/// by_float_type, but `on_int` for integers.
template <Lane X, class Int, class F32, class F64>
constexpr auto by_type(X x, Int on_int, F32 on_f32, F64 on_f64) {
  if constexpr (std::is_same_v<Element<X>, void>) {
    return is_float(x.type) ? by_float_type(x, on_f32, on_f64) : on_int(x);
  } else if constexpr (std::is_floating_point_v<Element<X>>) {
    return by_float_type(x, on_f32, on_f64);
  } else {
    return on_int(x);
  }
}

}  // namespace math

/// The larger value; NaN if either is, and +0 is larger than -0.
template <Lane X>
constexpr X maximum(X x, X y) {
  return math::by_type(
      x, [&](auto v) { return select(v < y, y, v); },
      [&](auto v) { return math::maximum_of<float>(v, y); },
      [&](auto v) { return math::maximum_of<double>(v, y); });
}

/// The smaller value; NaN if either is, and -0 is smaller than +0.
template <Lane X>
constexpr X minimum(X x, X y) {
  return math::by_type(
      x, [&](auto v) { return select(y < v, y, v); },
      [&](auto v) { return math::minimum_of<float>(v, y); },
      [&](auto v) { return math::minimum_of<double>(v, y); });
}

/// The larger value; a NaN counts as none. +0 is larger than -0.
template <Lane X>
constexpr X fmax(X x, X y) {
  return select(x == x, select(y == y, maximum(x, y), x), y);
}

/// The smaller value; a NaN counts as none. -0 is smaller than +0.
template <Lane X>
constexpr X fmin(X x, X y) {
  return select(x == x, select(y == y, minimum(x, y), x), y);
}

/// The next number after x towards y; y if they are equal, NaN if either is.
template <Lane X>
constexpr X nextafter(X x, X y) {
  return by_float_type(
      x, [&](auto v) { return math::nextafter_of<float>(v, y); },
      [&](auto v) { return math::nextafter_of<double>(v, y); });
}

/// Whether the sign is negative: of -0, too, of no NaN. Of integers, x < 0.
template <Lane X>
constexpr auto signbit(X x) {
  return math::by_type(
      x, [](auto v) { return v < math::small_constant(v, 0); },
      [](auto v) { return (math::sign_of<float>(v) != math::BitsOf<float>{0}) & (v == v); },
      [](auto v) { return (math::sign_of<double>(v) != math::BitsOf<double>{0}) & (v == v); });
}

/// |x| with the sign of y, where a NaN counts as positive.
template <Lane X>
constexpr X copysign(X x, X y) {
  return by_float_type(
      x, [&](auto v) { return math::copysign_of<float>(v, y); },
      [&](auto v) { return math::copysign_of<double>(v, y); });
}

/// -1, 0 or 1; +0 for -0, NaN for NaN.
template <Lane X>
constexpr X sign(X x) {
  const auto positive = x > 0, negative = x < 0;
  const X magnitude = select(positive | negative, math::small_constant(x, 1), x);
  const X y = select(negative, -magnitude, magnitude);
  return select(x == 0, math::small_constant(x, 0), y);
}

template <Lane X>
constexpr auto isnan(X x) {
  return x != x;
}
template <Lane X>
constexpr auto isinf(X x) {
  return abs(x) == math::infinity<float>;
}
template <Lane X>
constexpr auto isfinite(X x) {
  return abs(x) < math::infinity<float>;
}

}  // namespace nitinol
