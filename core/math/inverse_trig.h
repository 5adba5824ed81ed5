// asin, acos, atan, atan2.
//
// asin, acos: below 1/2 an odd polynomial; above, asin a = pi/2 - 2 asin sqrt((1 - a) / 2), whose
// argument is 1/2 at most, and what is subtracted first is exact where it matters. Polynomials:
// Remez, relative error below 2^-30 (f64: 2^-58.8).
//
// atan, atan2: |y| / |x| is the tangent of 0, pi/4 or pi/2 and a rest of at most pi/8 to either
// side, whose tangent is one quotient: of y and x, of y - x and y + x, of -x and y. What is added
// to it is a sum of two numbers. Polynomials: relative error below 2^-28.4 (f64: 2^-57.4).
#pragma once

#include "core/math/sigmoid.h"

#include <array>

namespace nitinol {
namespace math {

/// (asin(s) / s - 1) / s^2 in powers of s^2, s <= 1/2.
template <class T>
inline constexpr auto asin_tail = std::array{1.666665971e-01f, 7.500503957e-02f, 4.451701790e-02f,
                                             3.180723637e-02f, 1.444020122e-02f, 3.751450405e-02f};
template <>
inline constexpr auto asin_tail<double> = std::array{
    0.1666666666666676,   0.07499999999970801,  0.04464285717461054,  0.030381942707852036,
    0.022372214985582773, 0.01735161205234293,  0.013980820075308946, 0.01139891606278383,
    0.010780231848257453, 0.003706484687296516, 0.021707270928278014, -0.02099882567714517,
    0.03262848325720834};

/// (atan(t) / t - 1) / t^2 in powers of t^2, t <= tan(pi/8).
template <class T>
inline constexpr auto atan_tail = std::array{-3.333331645e-01f, 1.999847293e-01f, -1.424354166e-01f,
                                             1.059383675e-01f, -6.078204513e-02f};
template <>
inline constexpr auto atan_tail<double> = std::array{
    -0.333333333333332,    0.19999999999953233,  -0.14285714280165027, 0.11111110782074086,
    -0.09090897722800594,  0.07692059671717622,  -0.06663098661790598, 0.05847855179557677,
    -0.050391713566357584, 0.038061640781276676, -0.017904478081086753};

/// n pi/4 as a sum of two.
template <class T>
struct Eighths;
template <>
struct Eighths<float> {
  static constexpr float high[] = {0, 7.853981853e-01f, 1.570796371e+00f, 2.356194496e+00f,
                                   3.141592741e+00f};
  static constexpr float low[] = {0, -2.185569414e-08f, -4.371138829e-08f, -5.962440319e-09f,
                                  -8.742277657e-08f};
};
template <>
struct Eighths<double> {
  static constexpr double high[] = {0, 0.7853981633974483, 1.5707963267948966, 2.356194490192345,
                                    3.141592653589793};
  static constexpr double low[] = {0, 3.061616997868383e-17, 6.123233995736766e-17,
                                   9.184850993605148e-17, 1.2246467991473532e-16};
};

/// asin and acos have in common: s and s^2, s being the sine of what the polynomial is for.
template <Lane X>
struct SmallSine {
  X s, square, tail;
};
template <class T, Lane X, Lane Condition>
constexpr SmallSine<X> small_sine(X a, Condition is_small) {
  const X half = fma(a, constant<T>(a, -0.5), constant<T>(a, 0.5));
  const X square = select(is_small, a * a, half);
  return {select(is_small, a, sqrt(half)), square, polynomial(square, asin_tail<T>)};
}

template <class T, Lane X>
constexpr X asin_of(X x) {
  using E = Eighths<T>;
  const X a = abs(x);
  const auto is_small = a < T{0.5};
  const auto [s, square, tail] = small_sine<T>(a, is_small);
  const X near_0 = fma(s * square, tail, s);
  const X twice = s + s;
  const X difference = E::high[2] - twice, lost = (E::high[2] - difference) - twice;
  const X near_1 = difference - fma(twice * square, tail, -(lost + E::low[2]));
  return set_sign<T>(select(is_small, near_0, near_1), sign_of<T>(x));
}

template <class T, Lane X>
constexpr X acos_of(X x) {
  using E = Eighths<T>;
  const auto is_small = abs(x) < T{0.5};
  const auto [s, square, tail] = small_sine<T>(abs(x), is_small);
  const auto is_left = x < T{0};
  const auto number = [&](T small, T left) {
    return select(is_small, small, select(is_left, constant<T>(x, left), constant<T>(x, 0)));
  };
  const X base = number(E::high[2], E::high[4]), low = number(E::low[2], E::low[4]);
  const X part = select(is_small, x, select(is_left, s + s, -(s + s)));
  return base - (part + fma(part * square, tail, -low));
}

/// The angle in [0, pi] of (x, y), y >= 0 and x = b or, where `is_left`, -b; both finite.
template <class T, Lane X, Lane Condition>
constexpr X angle_of_point(X y, X b, Condition is_left) {
  using E = Eighths<T>;
  constexpr T low_tangent = static_cast<T>(0.41421356237309503),
              high_tangent = static_cast<T>(2.414213562373095);
  const auto is_steep = y > b * high_tangent, is_middle = y > b * low_tangent;
  const X above = select(is_steep, -b, select(is_middle, y - b, y));
  const X below = select(is_steep, y, select(is_middle, y + b, b));
  const X size = above / select(below == T{0}, constant<T>(y, 1), below);
  const X t = select(is_left, -size, size);
  const auto number = [&](const T(&eighths)[5]) {
    const X right = select(is_middle, constant<T>(y, eighths[1]), constant<T>(y, eighths[0]));
    const X left = select(is_middle, constant<T>(y, eighths[3]), constant<T>(y, eighths[4]));
    return select(is_steep, eighths[2], select(is_left, left, right));
  };
  const X square = t * t;
  const X rest = fma(t * square, polynomial(square, atan_tail<T>), number(E::low));
  return number(E::high) + (t + rest);
}

template <class T, Lane X>
constexpr X atan_of(X x) {
  const X one = constant<T>(x, 1);
  return set_sign<T>(angle_of_point<T>(abs(x), one, one < T{0}), sign_of<T>(x));
}

template <class T, Lane X>
constexpr X atan2_of(X y, X x) {
  constexpr T large = exp2_of_integer<T>(Format<T>::bias - 1);
  const X a = abs(y), b = abs(x);
  const auto is_left = set_sign<T>(constant<T>(x, 1), sign_of<T>(x)) < T{0};
  const auto is_rare = (a >= large) | (b >= large);
  const X angle = if_any(is_rare, angle_of_point<T>(a, b, is_left), [&] {
    const auto any_infinite = (a == infinity<T>) | (b == infinity<T>);
    // A number is nothing beside an infinity; a NaN stays.
    const auto shrunk = [&](X v) {
      return v * select(any_infinite, constant<T>(v, 0), constant<T>(v, 0.25));
    };
    const auto finite = [&](X v) { return select(v == infinity<T>, constant<T>(v, 1), shrunk(v)); };
    return angle_of_point<T>(finite(a), finite(b), is_left);
  });
  return set_sign<T>(angle, sign_of<T>(y));
}

}  // namespace math

/// The angle whose sine is x, in [-pi/2, pi/2]; NaN outside [-1, 1]; asin(-0) = -0.
template <Lane X>
constexpr X asin(X x) {
  return by_float_type(
      x, [](auto v) { return math::asin_of<float>(v); },
      [](auto v) { return math::asin_of<double>(v); });
}

/// The angle whose cosine is x, in [0, pi]; NaN outside [-1, 1].
template <Lane X>
constexpr X acos(X x) {
  return by_float_type(
      x, [](auto v) { return math::acos_of<float>(v); },
      [](auto v) { return math::acos_of<double>(v); });
}

/// The angle whose tangent is x, in [-pi/2, pi/2]; atan(-0) = -0.
template <Lane X>
constexpr X atan(X x) {
  return by_float_type(
      x, [](auto v) { return math::atan_of<float>(v); },
      [](auto v) { return math::atan_of<double>(v); });
}

/// The angle of the point (x, y), in [-pi, pi], with the sign of y and the special cases of C
/// (annex F): zeros and infinities have angles, too, which are multiples of pi/4.
template <Lane X>
constexpr X atan2(X y, X x) {
  return by_float_type(
      y, [&](auto v) { return math::atan2_of<float>(v, x); },
      [&](auto v) { return math::atan2_of<double>(v, x); });
}

}  // namespace nitinol
