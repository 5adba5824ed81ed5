// gelu: x cdf(x), the distribution function of the normal distribution. And its slope.
//
// Problem: cdf(x) = (1 + erf(x / sqrt 2)) / 2 cancels left of 0: at -5 nothing is left. Method: for
// a = |x|, cdf(-a) = e^(-a^2 / 2) h(a), where h falls slowly, like 0.4 / a; h(a) = v P(v) with
// v = 1 / (a + K) and a polynomial P (Chebyshev interpolation; relative error 2^-29.6 for f32,
// 2^-60 for f64). x < 0 has -a cdf(-a) and x > 0 has x - a cdf(-a): no branch but for the sign.
//
// The slope is cdf(x) + x pdf(x): left of 0 -t and right of it 1 + t, where t = e^(-a^2 / 2)
// (a / sqrt(2 pi) - h(a)).
//
// An error of a^2 / 2 is one of the whole result, so f32 computes in f64, with shorter polynomials.
// f64 carries the rounding errors along.
#pragma once

#include "core/math/sigmoid.h"

#include <array>
#include <bit>
#include <cstdint>

namespace nitinol {
namespace math {

/// P is a polynomial of w = slope v + offset, about within [-1, 1].
template <class T>
struct GeluConstants;
template <>
struct GeluConstants<float> {
  static constexpr double limit = 15, k = 3, slope = 7.2, offset = -1.4;
  static constexpr std::array p = {
      0.8205716009076639,      0.49143617733543915,    0.17472024041563811,
      0.022264237125882956,    -0.0075671913199462327, -0.002176940679856913,
      0.00066907950480609758,  0.00016904040117483166, -8.7289858136481414e-05,
      -7.9145813496658632e-06, 8.962247087269468e-06};
  /// (e^r - 1 - r) / r^2, relative error of e^r below 2^-31
  static constexpr std::array tail = {1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040};
};
template <>
struct GeluConstants<double> {
  static constexpr double limit = 39, k = 4.5, slope = 10, offset = -1.25;
  /// All but the first, to which their part is added with its rounding error.
  static constexpr double p0 = 0.85076122906964358;
  static constexpr std::array p = {
      0.68818424213762219,     0.44752387291615764,     0.22910572435811913,
      0.08752827955545156,     0.021473470302328362,    0.0012205830021753744,
      -0.0012641310946090087,  -0.00036281087951456819, 5.4560116253373504e-05,
      4.1159806518549547e-05,  -2.4073301650365531e-06, -4.5478946547304181e-06,
      2.4124781433572726e-07,  5.3475431608688158e-07,  -5.8065710951109691e-08,
      -6.4111073331046149e-08, 1.4321216979697194e-08,  7.0350031129017825e-09,
      -2.9411606374757986e-09, -5.8187236559307089e-10, 4.5372324641701368e-10,
      2.1720104841830972e-11,  -3.9065853664455792e-11, 6.5821343243928351e-13};
  /// The derivative of P, to a few digits.
  static constexpr std::array dp = {0.6882, 0.895,    0.6873,    0.3501,
                                    0.1074, 0.007323, -0.008849, -0.002902};
};

/// max(x, 0); keeps -0.
template <class T, Lane X>
constexpr X positive_part(X x) {
  return select(x < T{0}, T{0}, x);
}

/// What f32 computes of a = |x|, in f64: e^(-a^2 / 2) and h(a).
template <Lane X>
struct NormalTail {
  X e, h;
};
template <Lane X>
constexpr NormalTail<X> normal_tail(X a) {
  using C = GeluConstants<float>;
  const auto [shifted, r] = reduce_exp<double>(a * a * -0.5);
  const X e = fma(fma(polynomial(r, C::tail), r, 1.0), r, 1.0) * power_of_two<double>(shifted);
  const X v = 1.0 / (a + C::k);
  return {e, v * polynomial(fma(v, C::slope, C::offset), C::p)};
}

template <Lane X>
constexpr auto gelu_f32_of(X narrow) {
  const auto x = convert<double>(narrow);
  const auto a = at_most(abs(x), GeluConstants<float>::limit);
  const auto [e, h] = normal_tail(a);
  return convert<float>(unless_infinite<double>(x, positive_part<double>(x) - a * h * e));
}

/// 1 / sqrt(2 pi), and the rest of it.
inline constexpr double normal_density = 0.398942280401432677939946,
                        normal_density_low = -2.49232720227773e-17;

template <Lane X>
constexpr auto gelu_slope_f32_of(X narrow) {
  const auto x = convert<double>(narrow);
  const auto a = at_most(abs(x), GeluConstants<float>::limit);
  const auto [e, h] = normal_tail(a);
  const auto t = fma(a, normal_density, -h) * e;
  return convert<float>(select(x < 0.0, -t, t + 1.0));
}

/// v = 1 / (a + k), and w = slope v + offset, each as a sum of two.
template <Lane X>
struct TailArguments {
  X v, v_low, w, w_low;
};
template <class C, Lane X>
constexpr TailArguments<X> tail_arguments(X a) {
  const Pair<X> d = exact_sum(a, constant<double>(a, C::k));
  const X v = 1.0 / d.high;
  const X v_low = v * (fma(-v, d.high, 1.0) - v * d.low);
  const Pair<X> scaled = exact_product(v, constant<double>(a, C::slope));
  const Pair<X> w = exact_sum(scaled.high, constant<double>(a, C::offset));
  return {v, v_low, w.high, fma(v_low, C::slope, w.low + scaled.low)};
}

/// h(a) as a sum of two.
template <Lane X>
constexpr Pair<X> normal_tail_factor(X a) {
  using C = GeluConstants<double>;
  const auto [v, v_low, w, w_low] = tail_arguments<C>(a);
  const Pair<X> part = exact_product(w, polynomial(w, C::p));
  const Pair<X> p = exact_sum(part.high, constant<double>(a, C::p0));
  const X p_low = fma(polynomial(w, C::dp), w_low, p.low + part.low);
  const Pair<X> h = exact_product(v, p.high);
  return {h.high, h.low + fma(v, p_low, v_low * p.high)};
}

/// True where 2^n is negligible beside 1; not for NaN. Compared as bits, because compilers that see
/// how arguments and limits are ordered split the code in two.
template <Lane X>
constexpr auto is_negligible(X shifted) {
  return bitcast<uint64_t>(shifted) < std::bit_cast<uint64_t>(round_magic<double> - 58);
}
/// What numbers are raised by whose results may be denormal.
inline constexpr double gelu_raise = 0x1p96;
/// 2^n, and gelu_raise times that where `is_tiny`.
template <Lane X, Lane Condition>
constexpr X raised_power(X shifted, Condition is_tiny) {
  constexpr auto plain = one_bits<double>, raised = std::bit_cast<uint64_t>(gelu_raise);
  const auto n = bitcast<uint64_t>(shifted) << Format<double>::mantissa;
  return bitcast<double>(select(is_tiny, n + raised, n + plain));
}

template <Lane X>
constexpr X gelu_f64_of(X x) {
  const X a = at_most(abs(x), GeluConstants<double>::limit);
  const X half = a * -0.5;
  const Pair<X> z = exact_product(half, a);
  const ExpParts<X> e = exp_parts<double>(z.high, z.low);
  const auto is_negative = x < 0.0;
  const auto is_tiny = is_negligible(e.shifted);
  const Pair<X> h = normal_tail_factor(a);
  const Pair<X> ah = exact_product(a, h.high);
  const Pair<X> y = exact_product(ah.high, e.high);
  const X y_low = y.low + fma(ah.high, e.low, fma(a, h.low, ah.low) * e.high);
  const X scale = raised_power(e.shifted, is_tiny);
  // Right of 0, what is tiny is nothing beside x.
  const X right = select(is_tiny, 0.0, constant<double>(x, 1));
  const X share = select(is_negative, 1.0, right);
  const X part = y.high * scale * share, part_low = y_low * scale * share;
  const X base = positive_part<double>(x);
  const X difference = base - part;
  const X result = difference + (((base - difference) - part) - part_low);
  const X left = select(is_tiny, result * (1 / gelu_raise), result);
  const X signed_result = select(is_negative, left, result);
  return unless_infinite<double>(x, set_sign<double>(signed_result, sign_of<double>(x)));
}

template <Lane X>
constexpr X gelu_slope_f64_of(X x) {
  const X a = at_most(abs(x), GeluConstants<double>::limit);
  const Pair<X> z = exact_product(a * -0.5, a);
  const ExpParts<X> e = exp_parts<double>(z.high, z.low);
  const auto is_tiny = is_negligible(e.shifted);
  const Pair<X> h = normal_tail_factor(a);
  const Pair<X> density = exact_product(a, constant<double>(a, normal_density));
  const Pair<X> d = exact_sum(density.high, -h.high);
  const X d_low = d.low + fma(a, normal_density_low, density.low - h.low);
  const Pair<X> y = exact_product(d.high, e.high);
  const X scale = raised_power(e.shifted, is_tiny);
  const X t = y.high * scale, t_low = (y.low + fma(d.high, e.low, d_low * e.high)) * scale;
  const X left = (t + t_low) * select(is_tiny, -1 / gelu_raise, constant<double>(x, -1));
  const X sum = t + 1.0;
  const X right = select(is_tiny, 1.0, sum + ((1.0 - sum) + t + t_low));
  return select(x < 0.0, left, right);
}

}  // namespace math

/// x (1 + erf(x / sqrt 2)) / 2; NaN for -infinity.
template <Lane X>
constexpr X gelu(X x) {
  return by_float_type(
      x, [](auto v) { return math::gelu_f32_of(v); }, [](auto v) { return math::gelu_f64_of(v); });
}

/// The derivative of gelu: cdf(x) + x pdf(x).
template <Lane X>
constexpr X gelu_slope(X x) {
  return by_float_type(
      x, [](auto v) { return math::gelu_slope_f32_of(v); },
      [](auto v) { return math::gelu_slope_f64_of(v); });
}

}  // namespace nitinol
