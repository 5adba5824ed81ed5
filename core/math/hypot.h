// hypot, logaddexp.
//
// hypot: a^2 + b^2 by one fma and the root of it. Where squares would overflow, or lose digits of
// the larger one, both are scaled: a rare case.
//
// logaddexp: ln(e^a + e^b) = m + ln(1 + e^-d), m being the larger one and d their distance as a sum
// of two. Where m and the logarithm cancel, the result's error is an ulp of these, not of what is
// left: f32 computes in f64, and has no such place.
#pragma once

#include "core/math/compare.h"
#include "core/math/log.h"
#include "core/math/sigmoid.h"

namespace nitinol {
namespace math {

template <class T, Lane X>
constexpr X hypot_of(X x, X y) {
  constexpr int most = sizeof(T) == 4 ? 60 : 500, by = sizeof(T) == 4 ? 100 : 700;
  const X a = abs(x), b = abs(y);
  const X large = select(b < a, a, b), small = select(b < a, b, a);
  const auto is_usual =
      (large > exp2_of_integer<T>(-most)) & (large < exp2_of_integer<T>(most)) & (small == small);
  return if_any(!is_usual, sqrt(fma(large, large, small * small)), [&] {
    const auto is_small = large < T{1};
    const auto factor = [&](int exponent) {
      return select(is_small, constant<T>(x, exp2_of_integer<T>(exponent)),
                    constant<T>(x, exp2_of_integer<T>(-exponent)));
    };
    const X up = factor(by), scaled = large * up, other = small * up;
    const X plain = sqrt(fma(scaled, scaled, other * other)) * factor(-by);
    const auto is_infinite = (a == infinity<T>) | (b == infinity<T>);
    return select(is_infinite, constant<T>(x, infinity<T>), plain);
  });
}

template <Lane X>
constexpr X logaddexp_of(X a, X b) {
  using C = ExpConstants<double>;
  using L = LogConstants<double>;
  const Pair<X> difference = exact_sum(a, -b);
  const X distance = select(a == b, 0.0, -abs(difference.high));  // or infinite, both
  const X signed_low = -flip_sign<double>(difference.low, sign_of<double>(difference.high));
  const X low = select(abs(signed_low) < 1.0, signed_low, 0.0);  // else the power vanishes, too
  const X clamped = at_least(distance, C::lowest);
  const auto is_tiny = clamped < C::lowest_normal;
  const ExpParts<X> e = precise_exp_parts<double>(clamped, low);
  const X power = scale_down_to_denormal<double>(e.high, e.shifted, is_tiny);
  const X lost = select(is_tiny, 0.0, e.low * power);  // e.high is about 1
  const auto [minus_k, f] = reduce_log1p<double>(power);
  const X rest =
      fma(minus_k, -L::ln2_low, fma(fma(power, -0.5, 1.0), lost, f * f * polynomial(f, L::tail)));
  const X most = select(a < b, b, a);
  const Pair<X> sum = exact_sum(most, minus_k * -L::ln2_high);  // k is 0 or 1
  const X sum_low = select(sum.low == sum.low, sum.low, 0.0);
  return sum.high + ((f + rest) + sum_low);
}

}  // namespace math

/// sqrt(x^2 + y^2) without overflow or underflow on the way; infinite if either is, even beside a
/// NaN.
template <Lane X>
constexpr X hypot(X x, X y) {
  return by_float_type(
      x, [&](auto v) { return math::hypot_of<float>(v, y); },
      [&](auto v) { return math::hypot_of<double>(v, y); });
}

/// ln(e^a + e^b), without overflow; -infinity for two of these.
template <Lane X>
constexpr X logaddexp(X a, X b) {
  return by_float_type(
      a,
      [&](auto v) {
        return convert<float>(math::logaddexp_of(convert<double>(v), convert<double>(b)));
      },
      [&](auto v) { return math::logaddexp_of(v, b); });
}

}  // namespace nitinol
