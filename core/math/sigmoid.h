// sigmoid, silu, gelu by tanh: x / (1 + e^-z), z = x or a function of it. And activations that are
// a few operations on others: elu, mish, hardsigmoid, hardswish.
//
// Problem: 2 ulp over the whole range. e^-z overflows where the result is still a number, and each
// of exp, 1 + e, the quotient and the product rounds.
//
// sigmoid: numerator and denominator are a power of two times smaller, which leaves room for e^-z;
// and the denominator is added up so that only its last addition rounds.
// The others: t = e^-z and d = 1 + t as sums of two numbers; 1 / d by one division whose remainder
// is computed. Where t would overflow it is 2^k times too small, and so is the result at the end: 1
// is nothing beside it.
//
// No sign is asked for: where loops have several conditions g++ computes both sides of each.
#pragma once

#include "core/math/exp.h"

#include <bit>

namespace nitinol {
namespace math {

/// A number as a sum of two, the second of the size of the first one's rounding error.
template <Lane X>
struct Pair {
  X high, low;
};

/// x + y (Knuth).
template <Lane X>
constexpr Pair<X> exact_sum(X x, X y) {
  const X sum = x + y;
  const X added = sum - x;
  return {sum, (x - (sum - added)) + (y - added)};
}
/// x * y.
template <Lane X>
constexpr Pair<X> exact_product(X x, X y) {
  const X product = x * y;
  return {product, fma(x, y, -product)};
}

/// e^(x + low) = 2^n (high + low), n in the low bits of `shifted`.
template <Lane X>
struct ExpParts {
  X shifted, high, low;
};
template <class T, Lane X>
constexpr ExpParts<X> exp_parts(X x, X low) {
  const auto [shifted, reduced] = reduce_exp<T>(x);
  const X r = reduced + low;
  const X q = fma(polynomial(r, ExpConstants<T>::tail), r * r, r);
  const X high = q + T{1};
  return {shifted, high, q - (high - T{1})};
}

/// The same, with what the rounding of r lost.
template <class T, Lane X>
constexpr ExpParts<X> precise_exp_parts(X x, X low) {
  const ExpParts<X> e = exp_parts<T>(x, low);
  const X reduced = reduce_exp<T>(x).r, r = reduced + low;
  return {e.shifted, e.high, e.low + ((reduced - r) + low)};
}

/// Where e^x vanishes even when it is multiplied by |x|.
template <class T>
inline constexpr T exp_vanishes = sizeof(T) == 4 ? T{-110} : T{-760};
/// Where e^-x is nothing beside 1.
template <class T>
inline constexpr T logistic_is_1 = 45;
/// From this n on, 2^n beside 1 is all; above it the logistic function is scaled, so that it is a
/// normal number.
template <class T>
inline constexpr BitsOf<T> most_exponent = sizeof(T) == 4 ? 100 : 1000;

/// The logistic function is `factor` times a sum of two.
template <Lane X>
struct Logistic {
  X high, low, factor;
};
/// Of z + low; z is at least exp_vanishes and at most logistic_is_1.
template <class T, Lane X>
constexpr Logistic<X> logistic_of(X z, X low) {
  constexpr BitsOf<T> magic = std::bit_cast<BitsOf<T>>(round_magic<T>),
                      most = magic + most_exponent<T>;
  const ExpParts<X> e = exp_parts<T>(-z, -low);
  const auto n = bitcast<BitsOf<T>>(e.shifted);  // beside that of magic
  const auto kept = select(n < most, n, most);
  const X scale = power_of_two<T>(bitcast<T>(kept));
  const X factor = power_of_two<T>(bitcast<T>(kept - n));
  const X t = e.high * scale;
  const X d = t + T{1};
  const X d_low = (at_most(t, T{1}) - (d - at_least(t, T{1}))) + e.low * scale;
  const X inverse = T{1} / d;
  const X rest = fma(-inverse, d, constant<T>(z, 1)) - inverse * d_low;
  return {inverse, rest * inverse, factor};
}

template <class T, Lane X>
constexpr X sigmoid_of(X x) {
  constexpr int room = sizeof(T) == 4 ? 40 : 100;
  constexpr T one = exp2_of_integer<T>(-room);
  constexpr T most = exp2_of_integer<T>(Format<T>::mantissa - 1 - room);
  const X z = at_most(at_least(x, exp_vanishes<T>), logistic_is_1<T>);
  const auto [shifted, r] = reduce_exp<T>(-z);
  const X q = fma(polynomial(r, ExpConstants<T>::tail), r * r, r);  // e^r - 1
  const X scale = power_of_two<T, -room>(shifted);
  const X part = at_most(scale, most);  // of that, so that one + part is exact
  return one / (fma(scale, q, part + one) + (scale - part));
}

/// x times the logistic function of z + low; has the sign of x. Not for infinite x.
template <class T, Lane X>
constexpr X times_logistic(X x, X z, X low) {
  const Logistic<X> s = logistic_of<T>(z, low);
  const Pair<X> product = exact_product(x, s.high);
  const X y = (product.high + fma(x, s.low, product.low)) * s.factor;
  return set_sign<T>(y, sign_of<T>(x));
}

/// y, but infinity for infinity and NaN for -infinity: what infinity * 1 and -infinity * 0 are.
template <class T, Lane X>
constexpr X unless_infinite(X x, X y) {
  const auto is_infinite = bitcast<BitsOf<T>>(abs(x)) == infinity_bits<T>;
  return select(is_infinite, x + abs(x), y);
}

template <class T, Lane X>
constexpr X silu_of(X x) {
  const X above = at_least(x, exp_vanishes<T>);
  const X z = at_most(above, logistic_is_1<T>);
  return unless_infinite<T>(x, times_logistic<T>(above, z, constant<T>(x, 0)));
}

template <class T>
struct GeluTanhConstants;
template <>
struct GeluTanhConstants<float> {
  static constexpr float lowest = -11;  ///< below, the result is 0
  /// 2 sqrt(2 / pi), and 0.044715 times that
  static constexpr float linear = 1.59576917f, linear_low = -4.53406805e-08f;
  static constexpr float cubic = 0.0713548139f, cubic_low = 2.39883247e-09f;
};
template <>
struct GeluTanhConstants<double> {
  static constexpr double lowest = -21.75;
  static constexpr double linear = 1.5957691216057308, linear_low = -9.9693088091109202e-17;
  static constexpr double cubic = 0.071354816272600249, cubic_low = -6.175149918155315e-19;
};

/// Above, the result is x; its z is less than logistic_is_1.
template <class T>
inline constexpr T gelu_tanh_is_x = T{7.5};

/// (1 + tanh u) / 2 = 1 / (1 + e^-2u), here with 2u = x (linear + cubic x^2) as a sum of two.
template <class T, Lane X>
constexpr X gelu_tanh_of(X x) {
  using C = GeluTanhConstants<T>;
  const X above = at_least(x, C::lowest);
  const X a = at_most(above, gelu_tanh_is_x<T>);
  const Pair<X> square = exact_product(a, a);
  const Pair<X> cubic = exact_product(square.high, constant<T>(x, C::cubic));
  const Pair<X> sum = exact_sum(cubic.high, constant<T>(x, C::linear));
  const X rest =
      fma(square.low, C::cubic, fma(square.high, C::cubic_low, cubic.low)) + C::linear_low;
  const Pair<X> z = exact_product(a, sum.high);
  const X y = times_logistic<T>(above, z.high, fma(a, sum.low + rest, z.low));
  return unless_infinite<T>(x, y);
}

}  // namespace math

/// The logistic function, 1 / (1 + e^-x).
template <Lane X>
constexpr X sigmoid(X x) {
  return by_float_type(
      x, [](auto v) { return math::sigmoid_of<float>(v); },
      [](auto v) { return math::sigmoid_of<double>(v); });
}

/// x / (1 + e^-x); NaN for -infinity.
template <Lane X>
constexpr X silu(X x) {
  return by_float_type(
      x, [](auto v) { return math::silu_of<float>(v); },
      [](auto v) { return math::silu_of<double>(v); });
}

/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.
template <Lane X>
constexpr X gelu_tanh(X x) {
  return by_float_type(
      x, [](auto v) { return math::gelu_tanh_of<float>(v); },
      [](auto v) { return math::gelu_tanh_of<double>(v); });
}

/// x, or alpha (e^x - 1) left of 0.
template <Lane X>
constexpr X elu(X x, X alpha) {
  return select(x > 0, x, alpha * expm1(select(x > 0, 0, x)));
}

/// x tanh(softplus(x)) = x n / (n + 2) with n = e (e + 2), e = e^x. Of e its root is computed: far
/// left, where e is below the smallest normal number, x e may not be. From 20 on the quotient is 1.
template <Lane X>
constexpr X mish(X x) {
  const auto is_far = x > 20;
  const X root = exp(select(is_far, 20, x) * 0.5);
  const X e = root * root, n = e * (e + 2);
  return select(is_far, x, x * root * (root * ((e + 2) / (n + 2))));
}

/// (x + 3) / 6 limited to [0, 1].
template <Lane X>
constexpr X hardsigmoid(X x) {
  return select(x <= -3, 0, select(x >= 3, 1, (x + 3) / 6));
}

/// x hardsigmoid(x), 0 for -infinity.
template <Lane X>
constexpr X hardswish(X x) {
  return select(x <= -3, 0, select(x >= 3, x, x * ((x + 3) / 6)));
}

}  // namespace nitinol
