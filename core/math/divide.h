// floor_divide and remainder with Python's signs, fmod with C's, for floats and integers.
//
// Floats: q = trunc(a / b), r = a - q b by fma, which is exact while |a / b| is small enough for q
// to be; the quotient's rounding may leave q one off, which the sign of r shows. The remainder of
// larger quotients is a rare path: a is reduced by multiples of b 2^s, s in steps of 50 bits from
// the top; every step is exact. (f32 does that in f64: 6 steps rather than 42.)
#pragma once

#include "core/math/compare.h"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace nitinol {
namespace math {

/// quotient = floor(a / b); remainder has the sign of b and is smaller than |b|.
template <Lane X>
struct Division {
  X quotient, remainder;
};

/// a - trunc(a / divisor) divisor, possibly one divisor off, if |divisor| <= |a| and finite.
template <class T, Lane X>
constexpr X reduce_by(X a, X divisor) {
  const X r = fma(-trunc(a / divisor), divisor, a);
  return select((abs(divisor) <= abs(a)) & (abs(divisor) < infinity<T>), r, a);
}

/// b * 2^exponent (exponent <= 3000), infinite where that overflows.
template <Lane X>
constexpr X raised(X b, int exponent) {
  X result = b;
  for (; exponent > 1000; exponent -= 1000) result = result * 0x1p1000;
  return result * std::bit_cast<double>(static_cast<uint64_t>(1023 + exponent) << 52);
}

/// a reduced by b * 2^(50 * steps), ..., b * 2^50, b. f64 lanes.
template <int steps, Lane X>
constexpr X reduce_in_steps(X a, X b) {
  X r = a;
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    ((r = reduce_by<double>(r, raised(b, 50 * (steps - static_cast<int>(k))))), ...);
  }
  (std::make_index_sequence<static_cast<std::size_t>(steps) + 1>{});
  return r;
}

/// a mod |b| up to one |b|, for any a and b; NaN where the remainder is.
template <class T, Lane X>
constexpr X reduce_fully(X a, X b) {
  X r = a;
  if constexpr (sizeof(T) == 4) {
    r = convert<float>(reduce_in_steps<5>(convert<double>(a), convert<double>(b)));
  } else {
    r = reduce_in_steps<41>(a, b);
  }
  const auto undefined = (!(abs(a) < infinity<T>)) | (!(abs(b) > T{0}));
  return select(undefined, constant<T>(a, quiet_nan<T>), r);
}

template <class T, Lane X>
constexpr auto signs_differ(X a, X b) {
  return ((a < T{0}) & (b > T{0})) | ((a > T{0}) & (b < T{0}));
}

/// Turns a remainder of a by b, in (-2|b|, 2|b|), into C's: it has the sign of a and is exact.
template <class T, Lane X>
constexpr X truncated_remainder(X r, X a, X b) {
  const X size = abs(b);
  const X positive = flip_sign<T>(r, sign_of<T>(a));
  const X inside =
      select(positive < T{0}, positive + size, select(positive >= size, positive - size, positive));
  return set_sign<T>(inside, sign_of<T>(a));
}

/// Into Python's: it has the sign of b, with its rounding.
template <class T, Lane X>
constexpr X fix_remainder(X r, X a, X b) {
  const X truncated = truncated_remainder<T>(r, a, b);
  const X floored = select(signs_differ<T>(truncated, b), truncated + b, truncated);
  return select(floored == T{0}, copysign_of<T>(floored, b), floored);
}

/// Below this, trunc(a / b) is exact or, after rounding, one too large in size.
template <class T>
inline constexpr T exact_quotients = static_cast<T>(uint64_t{2} << Format<T>::mantissa);

/// If |ratio| = |a / b| < exact_quotients. An infinite b leaves a.
template <class T, Lane X>
constexpr Division<X> divide_fast(X a, X b, X ratio) {
  const X q = trunc(ratio);
  const X r = select(q == T{0}, a, fma(-q, b, a));
  const auto too_high = signs_differ<T>(r, b);
  return {select(too_high, q - T{1}, q), select(too_high, r + b, r)};
}

template <class T, Lane X>
constexpr X remainder_of(X a, X b) {
  const X ratio = a / b;
  const X r = divide_fast<T>(a, b, ratio).remainder;
  const X fast = select(r == T{0}, copysign_of<T>(r, b), r);
  return if_any(!(abs(ratio) < exact_quotients<T>), fast,
                [&] { return fix_remainder<T>(reduce_fully<T>(a, b), a, b); });
}

template <class T, Lane X>
constexpr X fmod_of(X a, X b) {
  const X ratio = a / b, q = trunc(ratio);
  const X r = select(q == T{0}, a, fma(-q, b, a));
  const X back = set_sign<T>(b, sign_of<T>(a));
  const X fast = set_sign<T>(select(signs_differ<T>(r, a), r + back, r), sign_of<T>(a));
  return if_any(!(abs(ratio) < exact_quotients<T>), fast,
                [&] { return truncated_remainder<T>(reduce_fully<T>(a, b), a, b); });
}

template <class T, Lane X>
constexpr X floor_divide_of(X a, X b) {
  const X ratio = a / b;
  const X q = divide_fast<T>(a, b, ratio).quotient;
  const X signed_q = select(q == T{0}, flip_sign<T>(abs(q), sign_of<T>(ratio)), q);
  const X large = select(b == T{0}, ratio, ratio + (a - a));  // NaN for infinite a
  return select(abs(ratio) < exact_quotients<T>, signed_q, large);
}

template <Lane X>
constexpr X int_floor_divide(X a, X b) {
  const X zero = small_constant(a, 0);
  const X divisor = select(b == zero, small_constant(a, 1), b);  // the lane is reported elsewhere
  const X q = a / divisor, r = a % divisor;
  return select((r != zero) & ((r ^ divisor) < zero), q - small_constant(a, 1), q);
}
template <Lane X>
constexpr X int_remainder(X a, X b) {
  const X zero = small_constant(a, 0);
  const X divisor = select(b == zero, small_constant(a, 1), b);
  const X r = a % divisor;
  return select((r != zero) & ((r ^ divisor) < zero), r + divisor, r);
}

template <Lane X>
constexpr X int_fmod(X a, X b) {
  return a % select(b == small_constant(a, 0), small_constant(a, 1), b);
}

}  // namespace math

/// floor(a / b) with NumPy's special cases. Floats: the floor of the exact quotient; from 2^24 (f64
/// 2^53) on, where floats are integers, a / b rounded; a / b for b = 0, NaN for infinite a.
/// Integers: a zero divisor counts as 1 (kernels check).
template <Lane X>
constexpr X floor_divide(X a, X b) {
  return math::by_type(
      a, [&](auto v) { return math::int_floor_divide(v, b); },
      [&](auto v) { return math::floor_divide_of<float>(v, b); },
      [&](auto v) { return math::floor_divide_of<double>(v, b); });
}

/// a - floor(a / b) b, with the sign of b. Floats: NaN if b is 0 or a infinite.
template <Lane X>
constexpr X remainder(X a, X b) {
  return math::by_type(
      a, [&](auto v) { return math::int_remainder(v, b); },
      [&](auto v) { return math::remainder_of<float>(v, b); },
      [&](auto v) { return math::remainder_of<double>(v, b); });
}

/// a - trunc(a / b) b, with the sign of a, exact. Floats: NaN if b is 0 or a infinite.
template <Lane X>
constexpr X fmod(X a, X b) {
  return math::by_type(
      a, [&](auto v) { return math::int_fmod(v, b); },
      [&](auto v) { return math::fmod_of<float>(v, b); },
      [&](auto v) { return math::fmod_of<double>(v, b); });
}

}  // namespace nitinol
