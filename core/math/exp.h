// exp, exp2, expm1.
//
// Problem: e^x over the whole range, without branches, since exp(-large) = 0 is a common case.
// Method: x = n ln2 + r with |r| <= ln2/2 (Cody and Waite, with fma), e^r by a minimax polynomial,
// times 2^n by integer addition to the exponent field. Where the result may be denormal, 2^(n+64)
// is applied instead and the product multiplied by 2^-64, which rounds once. n = 128 (f64: 1024)
// is no problem because then e^r < 1. Polynomials: Remez exchange, relative error below 2^-27.9
// (f64: 2^-57).
#pragma once

#include "core/math/format.h"

#include <array>
#include <bit>

namespace nitinol {
namespace math {

template <class T>
struct ExpConstants;
template <>
struct ExpConstants<float> {
  static constexpr float log2e = 1.44269504f;
  static constexpr float ln2_high = 0.693147182f, ln2_low = -1.90465421e-9f;
  static constexpr float lowest = -104, highest = 88.7228317f;  ///< beyond: 0, infinity
  static constexpr float lowest_normal = -87;                   ///< below: scale in two steps
  /// (e^r - 1 - r) / r^2
  static constexpr std::array tail = {5.000000000e-01f, 1.666651815e-01f, 4.166620597e-02f,
                                      8.368903771e-03f, 1.395051251e-03f};
  /// (2^r - 1) / r
  static constexpr std::array exp2_tail = {6.931471825e-01f, 2.402265072e-01f, 5.550326407e-02f,
                                           9.618001990e-03f, 1.340080518e-03f, 1.547689608e-04f};
};
template <>
struct ExpConstants<double> {
  static constexpr double log2e = 1.4426950408889634;
  static constexpr double ln2_high = 0.6931471805599453, ln2_low = 2.3190468138462996e-17;
  static constexpr double lowest = -746, highest = 709.782712893384;
  static constexpr double lowest_normal = -708;
  static constexpr std::array tail = {
      0.5000000000000012,    0.166666666666667,      0.04166666666651553,    0.008333333333307255,
      0.0013888888946984117, 0.00019841269917286096, 2.4801489978030546e-05, 2.755721637961362e-06,
      2.763126660915988e-07, 2.5117838266127348e-08};
  static constexpr std::array exp2_tail = {
      0.6931471805599453,     0.24022650695910133,    0.05550410866482174,
      0.009618129107593335,   0.001333355814637916,   0.00015403530458077443,
      1.5252733867436733e-05, 1.3215434817859755e-06, 1.0178046499920476e-07,
      7.073860031470722e-09,  4.457382039176871e-10};
};

/// x = n ln2 + r. `shifted` holds n in its low bits.
template <Lane X>
struct ExpReduction {
  X shifted, r;
};
template <class T, Lane X>
constexpr ExpReduction<X> reduce_exp(X x) {
  using C = ExpConstants<T>;
  const X shifted = fma(x, C::log2e, round_magic<T>);
  const X n = shifted - round_magic<T>;
  const X r = fma(n, -C::ln2_low, fma(n, -C::ln2_high, x));
  return {shifted, r};
}

/// 2^n, a normal number.
template <class T>
constexpr T exp2_of_integer(int n) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(n + Format<T>::bias) << Format<T>::mantissa);
}

/// 2^(n + more) for the n in the low bits of `shifted`; must be a normal number.
template <class T, int more = 0, Lane X>
constexpr X power_of_two(X shifted) {
  constexpr auto zero = std::bit_cast<BitsOf<T>>(exp2_of_integer<T>(more));
  return bitcast<T>((bitcast<BitsOf<T>>(shifted) << Format<T>::mantissa) + zero);
}

/// p * 2^n, n being in the low bits of `shifted`; `tiny` where the result may be denormal.
template <class T, Lane X, Lane Condition>
constexpr X scale_down_to_denormal(X p, X shifted, Condition tiny) {
  const auto bits = bitcast<BitsOf<T>>(p) + (bitcast<BitsOf<T>>(shifted) << Format<T>::mantissa);
  const auto raised = bits + (BitsOf<T>{64} << Format<T>::mantissa);
  const X scaled = bitcast<T>(select(tiny, raised, bits));
  return select(tiny, scaled * T{0x1p-64}, scaled);
}

template <class T, Lane X>
constexpr X exp_of(X x) {
  using C = ExpConstants<T>;
  const X clamped = at_least(x, C::lowest);
  const auto [shifted, r] = reduce_exp<T>(clamped);
  const X p = fma(fma(polynomial(r, C::tail), r, T{1}), r, T{1});
  const X y = scale_down_to_denormal<T>(p, shifted, clamped < C::lowest_normal);
  return select(x <= C::highest, y, x + infinity<T>);  // NaN is not <= either
}

template <class T, Lane X>
constexpr X exp2_of(X x) {
  using F = Format<T>;
  constexpr T lowest = -(F::bias + F::mantissa + 1);
  const X clamped = at_least(x, lowest);
  const X shifted = clamped + round_magic<T>;
  const X r = clamped - (shifted - round_magic<T>);
  const X p = fma(polynomial(r, ExpConstants<T>::exp2_tail), r, T{1});
  const X y = scale_down_to_denormal<T>(p, shifted, clamped < T{3 - F::bias});
  return select(x < T{F::bias + 1}, y, x + infinity<T>);
}

/// e^(x + low) - 1, low being a rounding error of x, for x <= 0 whose 2^n is a normal number.
/// 2^n (e^r - 1) + (2^n - 1): the last term is exact, so small x lose nothing.
template <class T, Lane X>
constexpr X expm1_of_sum(X x, X low) {
  const auto [shifted, r] = reduce_exp<T>(x);
  const X p = r + fma(polynomial(r, ExpConstants<T>::tail), r * r, low);
  const X scale = power_of_two<T>(shifted);
  return fma(p, scale, scale - T{1});
}

template <class T, Lane X>
constexpr X expm1_of(X x) {
  using C = ExpConstants<T>;
  constexpr T lowest =
      -T{Format<T>::mantissa + 3} * T{0.6875};  // e^lowest is below half an ulp of 1
  const X clamped = at_most(at_least(x, lowest * T{1.5}), C::highest + T{0.25});
  const auto [shifted, r] = reduce_exp<T>(clamped);
  const X p = fma(polynomial(r, C::tail), r * r, r);
  // Half of everything, because 2^n may overflow when the result does not.
  const X half_scale = power_of_two<T>(shifted - T{1});
  const X half = fma(p, half_scale, half_scale - T{0.5});
  return select(abs(x) < T{0x1p-60f}, x, half + half);  // keeps -0 and denormals
}

}  // namespace math

/// e^x. At most 1 ulp.
template <Lane X>
constexpr X exp(X x) {
  return by_float_type(
      x, [](auto v) { return math::exp_of<float>(v); },
      [](auto v) { return math::exp_of<double>(v); });
}

/// 2^x; exact for integral x.
template <Lane X>
constexpr X exp2(X x) {
  return by_float_type(
      x, [](auto v) { return math::exp2_of<float>(v); },
      [](auto v) { return math::exp2_of<double>(v); });
}

/// e^x - 1, accurate near 0; expm1(-0) = -0.
template <Lane X>
constexpr X expm1(X x) {
  return by_float_type(
      x, [](auto v) { return math::expm1_of<float>(v); },
      [](auto v) { return math::expm1_of<double>(v); });
}

}  // namespace nitinol
