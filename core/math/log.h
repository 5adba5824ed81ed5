// log, log2, log10, log1p.
//
// Method: x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1 exactly, and
// ln(1+f) = f + f^2 q(f) with a minimax polynomial q (Remez, relative error of the logarithm below
// 2^-27.3, f64: 2^-56). No division. Zero, negative, denormal, infinite and NaN arguments are one
// rare case. k ln2 is added in two
// parts, both positive, through -k, so that log1p(-0) = -0.
#pragma once

#include "core/math/format.h"

#include <array>

namespace nitinol {
namespace math {

template <class T>
struct LogConstants;
template <>
struct LogConstants<float> {
  static constexpr uint32_t sqrt_half_bits = 0x3f3504f3;
  static constexpr float ln2_high = 6.931471229e-01f, ln2_low = 5.769999048e-08f;
  static constexpr float log2e = 1.44269504f, log10e = 0.434294492f;
  static constexpr float log10_2_high = 3.010299802e-01f, log10_2_low = 1.548133349e-08f;
  /// (ln(1+f) - f) / f^2
  static constexpr std::array tail = {-5.000000000e-01f, 3.333333135e-01f,  -2.500081956e-01f,
                                      2.000122666e-01f,  -1.662335694e-01f, 1.420175731e-01f,
                                      -1.316017956e-01f, 1.276157647e-01f,  -7.634501159e-02f};
};
template <>
struct LogConstants<double> {
  static constexpr uint64_t sqrt_half_bits = 0x3fe6a09e667f3bcd;
  static constexpr double ln2_high = 0.6931471805599453, ln2_low = 2.3190468138462996e-17;
  static constexpr double log2e = 1.4426950408889634, log10e = 0.4342944819032518;
  static constexpr double log10_2_high = 0.3010299956639812, log10_2_low = -2.8037281277851704e-18;
  static constexpr std::array tail = {
      -0.5000000000000007,  0.3333333333333338,  -0.24999999999960457, 0.19999999999952423,
      -0.1666666667345107,  0.14285714297067958, -0.12499999473157669, 0.1111110997933379,
      -0.1000002188806865,  0.09090967130092081, -0.08332814864908135, 0.07690623159301226,
      -0.07149760743244293, 0.06695251850781464, -0.06206211916782558, 0.05605756756142724,
      -0.0555719440810078,  0.06609010190730573, -0.06417727849837158, 0.02920065127235532};
};

/// x = 2^k (1 + f).
template <Lane X>
struct LogReduction {
  X minus_k, f;
};

/// The number -k for exponent bits that are k * 2^mantissa + one_bits, k being an integer. 64-bit
/// integers are converted by putting them into the low bits of 2^52: AVX2 has no instruction.
template <class T, Lane U>
constexpr auto minus_exponent(U biased) {
  using F = Format<T>;
  constexpr T two_power = static_cast<T>(uint64_t{1} << F::mantissa);
  const auto shifted = bitcast<T>((biased >> F::mantissa) | bits_of(scalar_type_of<T>, two_power));
  return (two_power + T{F::bias}) - shifted;
}

/// x must be a positive normal number.
template <class T, Lane X>
constexpr LogReduction<X> reduce_log(X x) {
  using F = Format<T>;
  constexpr BitsOf<T> sqrt_half = LogConstants<T>::sqrt_half_bits;
  const auto biased = bitcast<BitsOf<T>>(x) + (one_bits<T> - sqrt_half);
  const auto m = (biased & ((BitsOf<T>{1} << F::mantissa) - 1)) + sqrt_half;
  return {minus_exponent<T>(biased), bitcast<T>(m) - T{1}};
}

template <class T, Lane X>
constexpr X log1p_small(X f) {
  return fma(f * f, polynomial(f, LogConstants<T>::tail), f);
}

/// ln(x), log2(x), log10(x) from the reduction; ln(1+f) is computed here.
template <class T, Lane X>
constexpr X finish_log(LogReduction<X> in) {
  using C = LogConstants<T>;
  if constexpr (sizeof(T) == 8) {  // one rounding fewer: the other way gives 1.14 ulp
    const X square_part = in.f * in.f * polynomial(in.f, C::tail);
    const X small = in.f + fma(in.minus_k, -C::ln2_low, square_part);
    return fma(in.minus_k, -C::ln2_high, small);
  } else {
    const X small = log1p_small<T>(in.f);
    return fma(in.minus_k, -C::ln2_high, fma(in.minus_k, -C::ln2_low, small));
  }
}
template <class T, Lane X>
constexpr X finish_log2(LogReduction<X> in) {
  return fma(log1p_small<T>(in.f), LogConstants<T>::log2e, -in.minus_k);
}
template <class T, Lane X>
constexpr X finish_log10(LogReduction<X> in) {
  using C = LogConstants<T>;
  const X small = log1p_small<T>(in.f) * C::log10e;
  return fma(in.minus_k, -C::log10_2_high, fma(in.minus_k, -C::log10_2_low, small));
}

/// `y`, a logarithm of x, but for the x that have none or an infinite one.
template <class T, Lane X>
constexpr X with_special_logs(X x, X y) {
  const X finite = select(x < infinity<T>, y, x);  // infinity and NaN stay
  const X not_positive = select(x == T{0}, constant<T>(x, -infinity<T>), x + quiet_nan<T>);
  return select(x > T{0}, finite, not_positive);
}

/// A logarithm of any x, by `finish`.
template <class T, Lane X, class Finish>
constexpr X log_with(X x, Finish finish) {
  constexpr BitsOf<T> smallest = BitsOf<T>{1} << Format<T>::mantissa;
  constexpr T raise = static_cast<T>(uint64_t{1} << (Format<T>::mantissa + 1));
  const auto rare = bitcast<BitsOf<T>>(x) - smallest >= infinity_bits<T> - smallest;
  return if_any(rare, finish(reduce_log<T>(x)), [&] {
    const auto denormal = x < std::numeric_limits<T>::min();
    auto in = reduce_log<T>(select(denormal, x * raise, x));
    in.minus_k = select(denormal, in.minus_k + T{Format<T>::mantissa + 1}, in.minus_k);
    return with_special_logs<T>(x, finish(in));
  });
}

template <class T, Lane X>
constexpr X log_of(X x) {
  return log_with<T>(x, [](const auto& in) { return finish_log<T>(in); });
}
template <class T, Lane X>
constexpr X log2_of(X x) {
  return log_with<T>(x, [](const auto& in) { return finish_log2<T>(in); });
}
template <class T, Lane X>
constexpr X log10_of(X x) {
  return log_with<T>(x, [](const auto& in) { return finish_log10<T>(in); });
}

/// 1 + x for x > -1 that is not large. k comes from 1 + x rounded, but f = 2^-k x + (2^-k - 1)
/// from x itself, rounded once.
template <class T, Lane X>
constexpr LogReduction<X> reduce_log1p(X x) {
  using F = Format<T>;
  constexpr BitsOf<T> mantissa_mask = (BitsOf<T>{1} << F::mantissa) - 1;
  const X u = x + T{1};
  const auto biased = bitcast<BitsOf<T>>(u) + (one_bits<T> - LogConstants<T>::sqrt_half_bits);
  const X scale = bitcast<T>(2 * one_bits<T> - (biased & ~mantissa_mask));  // 2^-k
  const X f = fma(x, scale, -(T{1} - scale));                               // -0 stays -0
  return {minus_exponent<T>(biased), f};
}

template <class T, Lane X>
constexpr X log1p_of(X x) {
  constexpr T large = static_cast<T>(uint64_t{1} << 60);
  const X u = x + T{1};
  const auto rare = !((u > T{0}) & (x < large));
  return if_any(rare, finish_log<T>(reduce_log1p<T>(x)),
                [&] { return with_special_logs<T>(u, finish_log<T>(reduce_log<T>(u))); });
}

}  // namespace math

/// Natural logarithm; -inf at 0, NaN below. At most 1 ulp.
template <Lane X>
constexpr X log(X x) {
  return by_float_type(
      x, [](auto v) { return math::log_of<float>(v); },
      [](auto v) { return math::log_of<double>(v); });
}

/// Logarithm to base 2; exact for powers of 2.
template <Lane X>
constexpr X log2(X x) {
  return by_float_type(
      x, [](auto v) { return math::log2_of<float>(v); },
      [](auto v) { return math::log2_of<double>(v); });
}

/// Logarithm to base 10.
template <Lane X>
constexpr X log10(X x) {
  return by_float_type(
      x, [](auto v) { return math::log10_of<float>(v); },
      [](auto v) { return math::log10_of<double>(v); });
}

/// ln(1 + x), accurate near 0; log1p(-0) = -0.
template <Lane X>
constexpr X log1p(X x) {
  return by_float_type(
      x, [](auto v) { return math::log1p_of<float>(v); },
      [](auto v) { return math::log1p_of<double>(v); });
}

}  // namespace nitinol
