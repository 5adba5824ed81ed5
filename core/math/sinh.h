// sinh, cosh.
//
// Method: |x| = n ln2 + r with |r| <= ln2/2, and the theorems for sums: sinh x = sinh(n ln2) cosh r
// + cosh(n ln2) sinh r, where those of n ln2 are sums of powers of two, and all of cosh r beyond 1
// is small. No division. Below 0.55 n is 0, as the terms would cancel in part. Polynomials: Remez,
// relative error below 2^-29.8 (f64: 2^-60.6).
#pragma once

#include "core/math/exp.h"

#include <array>
#include <bit>

namespace nitinol {
namespace math {

/// (sinh(r) / r - 1) / r^2 in powers of r^2, r <= 0.55.
template <class T>
inline constexpr auto sinh_tail = std::array{1.666666865e-01f, 8.333050646e-03f, 2.000207751e-04f};
template <>
inline constexpr auto sinh_tail<double> =
    std::array{0.16666666666666666,    0.008333333333333647,  0.0001984126984059862,
               2.7557319883938044e-06, 2.505178038922916e-08, 1.613920038507604e-10};
/// (cosh(r) - 1) / r^2 in powers of r^2.
template <class T>
inline constexpr auto cosh_tail = std::array{5.000001192e-01f, 4.166411981e-02f, 1.403373899e-03f};
template <>
inline constexpr auto cosh_tail<double> =
    std::array{0.49999999999999994,    0.041666666666671376,   0.0013888888887881535,
               2.4801588291992325e-05, 2.7556827020311135e-07, 2.099702999785027e-09};

/// sinh or cosh of |x|: `sign` is that of e^-|x|.
template <class T, Lane X>
constexpr X hyperbolic_of(X x, T sign) {
  constexpr T limit = sizeof(T) == 4 ? T{89.5} : T{710.5};  // beyond, infinity
  constexpr T halved = sizeof(T) == 4 ? T{80} : T{700};     // beyond, 2^n may overflow
  constexpr T negligible = sizeof(T) == 4 ? T{32} : T{64};  // n from which on 2^-n is
  constexpr T small = static_cast<T>(0.55);
  const X a = at_most(abs(x), limit);
  using C = ExpConstants<T>;
  const auto is_small = bitcast<BitsOf<T>>(abs(x)) < std::bit_cast<BitsOf<T>>(small);
  const X plain =
      fma(a, select(is_small, constant<T>(x, 0), constant<T>(x, C::log2e)), round_magic<T>);
  const X k = plain - round_magic<T>;
  const X r = fma(k, -C::ln2_low, fma(k, -C::ln2_high, a));
  const auto is_large = a > halved;
  const X shifted = select(is_large, plain - T{1}, plain);
  const X n = at_most(shifted - round_magic<T>, negligible);
  const X high = power_of_two<T, -1>(shifted);
  const X low = power_of_two<T, -1>(round_magic<T> - n) * sign;
  const X square = r * r;
  const X sine = fma(polynomial(square, sinh_tail<T>), square * r, r);
  const X cosine = polynomial(square, cosh_tail<T>) * square;  // less 1
  const X same = high + low, other = high - low;
  const X y = same + fma(same, cosine, other * sine);
  return select(is_large, y + y, y);
}

template <class T, Lane X>
constexpr X sinh_of(X x) {
  return set_sign<T>(hyperbolic_of<T>(x, T{-1}), sign_of<T>(x));
}
template <class T, Lane X>
constexpr X cosh_of(X x) {
  return hyperbolic_of<T>(x, T{1});
}

}  // namespace math

/// Hyperbolic sine; sinh(-0) = -0.
template <Lane X>
constexpr X sinh(X x) {
  return by_float_type(
      x, [](auto v) { return math::sinh_of<float>(v); },
      [](auto v) { return math::sinh_of<double>(v); });
}

/// Hyperbolic cosine.
template <Lane X>
constexpr X cosh(X x) {
  return by_float_type(
      x, [](auto v) { return math::cosh_of<float>(v); },
      [](auto v) { return math::cosh_of<double>(v); });
}

}  // namespace nitinol
