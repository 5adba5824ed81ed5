// cbrt.
//
// Method: |x| = 2^(3 q) t with t = 2^(-1, 0 or 1) m, m in [sqrt(1/2), sqrt(2)). A polynomial of m
// gives y near cbrt(t), to 2^-14 (f64: 2^-22); with d = (t - y^3) / t, computed without the
// rounding of y^3, cbrt(t) = y (1 - d)^(-1/3) = y (1 + d/3 + 2 d^2 / 9 + ...).
#pragma once

#include "core/math/log.h"
#include "core/math/sigmoid.h"

#include <array>

namespace nitinol {
namespace math {

/// cbrt(1 + f) in powers of f.
template <class T>
inline constexpr auto cbrt_start =
    std::array{1.000069261e+00f, 3.336223066e-01f, -1.157164276e-01f, 5.822127685e-02f};
template <>
inline constexpr auto cbrt_start<double> = std::array{
    0.99999987666876,      0.33333568061365004, -0.11108613025313928, 0.061562268655468794,
    -0.041816517867807095, 0.03346052099656088, -0.020381656582314875};

/// 2^thirds times the root of a positive normal number.
template <class T, Lane X>
constexpr X cbrt_of_normal(X a, T thirds) {
  const auto [minus_k, f] = reduce_log<T>(a);
  const X shifted = fma(minus_k, static_cast<T>(-1.0 / 3), round_magic<T>);
  const X q = shifted - round_magic<T>;
  const X rest = fma(q, T{-3}, -minus_k);  // -1, 0 or 1
  const auto is_below = rest<T{0}, is_above = rest> T{0};
  const auto choose = [&](double below, double above) {
    return select(is_below, constant<T>(a, below),
                  select(is_above, constant<T>(a, above), constant<T>(a, 1)));
  };
  const X t = (f + T{1}) * choose(0.5, 2);
  const X y = polynomial(f, cbrt_start<T>) * choose(0.79370052598409974, 1.2599210498948732);
  const Pair<X> square = exact_product(y, y);
  const X d = fma(-square.low, y, fma(-square.high, y, t)) / t;
  const X root = fma(y * d, fma(d, static_cast<T>(2.0 / 9), static_cast<T>(1.0 / 3)), y);
  return root * power_of_two<T>(shifted + thirds);
}

template <class T, Lane X>
constexpr X cbrt_of(X x) {
  constexpr BitsOf<T> smallest = BitsOf<T>{1} << Format<T>::mantissa;
  constexpr int thirds = sizeof(T) == 4 ? 8 : 18;
  const X a = abs(x);
  const auto is_rare = bitcast<BitsOf<T>>(a) - smallest >= infinity_bits<T> - smallest;
  const X y = if_any(is_rare, cbrt_of_normal<T>(a, T{0}), [&] {
    const auto is_denormal = (a < std::numeric_limits<T>::min()) & (a > T{0});
    const X raised = a * exp2_of_integer<T>(3 * thirds);
    return select(is_denormal, cbrt_of_normal<T>(raised, T{-thirds}), a);
  });
  return set_sign<T>(y, sign_of<T>(x));
}

}  // namespace math

/// The cube root, of negative numbers, too; cbrt(-0) = -0.
template <Lane X>
constexpr X cbrt(X x) {
  return by_float_type(
      x, [](auto v) { return math::cbrt_of<float>(v); },
      [](auto v) { return math::cbrt_of<double>(v); });
}

}  // namespace nitinol
