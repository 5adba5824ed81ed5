// tanh.
//
// Method: with u = e^(2|x|) - 1, computed without cancellation, tanh |x| = u / (u + 2): one
// division, no branch. The sign is put back at the end, so that tanh(-0) = -0.
//
// Three roundings (u, u + 2, the quotient) may add up to 2.5 ulp, where their binades are
// unfavourable. For |x| < 0.26 therefore u = r + c with r = 2|x| and a small c, no multiple of ln 2
// split off, and u / (u + 2) is written as |x| + (c - |x| u) / (u + 2).
#pragma once

#include "core/math/exp.h"

#include <array>
#include <bit>

namespace nitinol {
namespace math {

/// (e^r - 1 - r) / r^2 for -ln2/2 <= r <= 0.525, with relative error of e^r - 1 below 2^-29.4
/// (f64: 2^-57.8).
template <class T>
inline constexpr auto tanh_tail = std::array{5.000000000e-01f, 1.666667759e-01f, 4.166640341e-02f,
                                             8.330602199e-03f, 1.393437618e-03f, 2.135593240e-04f};
template <>
inline constexpr auto tanh_tail<double> = std::array{
    0.49999999999999994,   0.166666666666666,      0.04166666666667618,    0.008333333333380856,
    0.0013888888884881557, 0.00019841269744852225, 2.4801594430424783e-05, 2.7557376583754886e-06,
    2.755158513742837e-07, 2.5066189310306624e-08, 2.2605853355540492e-09};

template <class T, Lane X>
constexpr X tanh_of(X x) {
  using C = ExpConstants<T>;
  constexpr T limit = sizeof(T) == 4 ? T{10} : T{20};  // tanh is 1 from 9.02 (19.1) on
  constexpr T small_limit = static_cast<T>(0.26);
  const X a = at_most(abs(x), limit);
  // Compared as bits, because compilers that see the relation to `limit` split the code in two.
  const auto small = bitcast<BitsOf<T>>(abs(x)) < std::bit_cast<BitsOf<T>>(small_limit);
  const X shifted =
      fma(a, select(small, constant<T>(x, 0), constant<T>(x, 2 * C::log2e)), round_magic<T>);
  const X n = shifted - round_magic<T>;
  const X r = fma(n, -C::ln2_low, fma(n, -C::ln2_high, a + a));
  const X c = polynomial(r, tanh_tail<T>) * (r * r);
  const X scale = power_of_two<T>(shifted);
  const X u = fma(r + c, scale, scale - T{1});
  const X base = select(small, a, constant<T>(x, 0));
  const X y = base + select(small, fma(-a, u, c), u) / (u + T{2});
  return flip_sign<T>(y, sign_of<T>(x));
}

}  // namespace math

/// Hyperbolic tangent; tanh(-0) = -0.
template <Lane X>
constexpr X tanh(X x) {
  return by_float_type(
      x, [](auto v) { return math::tanh_of<float>(v); },
      [](auto v) { return math::tanh_of<double>(v); });
}

}  // namespace nitinol
