// sin, cos, tan.
//
// Method: x = n pi/2 + r with r in [-pi/4, pi/4] (core/math/reduce.h); n modulo 4 selects sin(r) or
// cos(r) and the sign. (One polynomial on [-pi/2, pi/2] would do with fewer instructions, but is
// off by 2.1 ulp at its ends, and there lies cos(0) = 1.) tan x = tan(r) or -1 / tan(r); the parts
// of r and tan(r) that rounding loses are kept for the quotient. Signs are put on at the end: an
// fma that adds a product to -0 would lose it. Polynomials: Remez, relative error below 2^-27.8
// (f64: 2^-57.8; tan 2^-29.4, 2^-56.2).
#pragma once

#include "core/math/format.h"
#include "core/math/reduce.h"

#include <array>

namespace nitinol {
namespace math {

/// (sin(r) / r - 1) / r^2 in powers of r^2.
template <class T>
inline constexpr auto sin_tail = std::array{-1.666665375e-01f, 8.332106285e-03f, -1.950789156e-04f};
template <>
inline constexpr auto sin_tail<double> =
    std::array{-0.1666666666666663,   0.00833333333332184,     -0.0001984126982935851,
               2.755731353849833e-06, -2.5050734385200457e-08, 1.5895432965146973e-10};

/// (cos(r) - 1) / r^2 in powers of r^2.
template <class T>
inline constexpr auto cos_tail =
    std::array{-0.5f, 4.166664556e-02f, -1.388730714e-03f, 2.443187623e-05f};
template <>
inline constexpr auto cos_tail<double> = std::array{-0.5,
                                                    0.041666666666666595,
                                                    -0.0013888888888873342,
                                                    2.4801587289002076e-05,
                                                    -2.7557314217037415e-07,
                                                    2.0875705396043194e-09,
                                                    -1.13587492670018e-11};

/// (tan(r) / r - 1) / r^2 in powers of r^2.
template <class T>
inline constexpr auto tan_tail =
    std::array{3.333334923e-01f, 1.333263367e-01f, 5.406339467e-02f, 2.126366831e-02f,
               1.088518742e-02f, 2.528209188e-05f, 4.408757202e-03f};
template <>
inline constexpr auto tan_tail<double> = std::array{
    0.3333333333333278,     0.1333333333341433,     0.05396825392681005,   0.02186948960557228,
    0.008863219212666746,   0.003592288642486752,   0.0014547606081622207, 0.0005950536803687497,
    0.00022241234282752883, 0.00013645851225069992, -2.62914645544405e-05, 8.936499353054187e-05,
    -4.482921246824301e-05, 2.085182164454553e-05};

/// 1, or -1 if the lowest bit of `n` is set. Its sign is tested rather than the bit because
/// compilers do not vectorise the latter.
template <class T, Lane X, Lane U>
constexpr X parity_sign(X like, U n) {
  return flip_sign<T>(constant<T>(like, 1), n << (sizeof(T) * 8 - 1));
}

/// sin(r + n pi/2).
template <class T, Lane X, Lane U>
constexpr X sin_of_quadrant(X r, U n) {
  const X square = r * r;
  const X sine = fma(polynomial(square, sin_tail<T>), square * r, r);
  const X cosine = fma(polynomial(square, cos_tail<T>), square, T{1});
  const X y = select(parity_sign<T>(r, n) < T{0}, cosine, sine);
  return flip_sign<T>(y, (n << (sizeof(T) * 8 - 2)) & sign_bit<T>);
}

/// |x| = n pi/2 + angle for large |x|; NaN for infinity and NaN.
template <Lane X, Lane U>
struct LargeReduction {
  SplitAngle<X> angle;
  U n;
};
template <class T, Lane X>
constexpr auto reduce_large(X x) {
  const auto turns = turns_of<T>(x);
  const auto n = convert<BitsOf<T>>((turns.high + (uint64_t{1} << 61)) >> 62);
  const auto fraction =
      Turns<decltype(turns.low)>{(turns.high << 2) | (turns.low >> 62), turns.low << 2};
  const auto angle = angle_of<T>(x, fraction, ReduceConstants<double>::pi_high / 2,
                                 ReduceConstants<double>::pi_middle / 2);
  const X high = select(abs(x) < infinity<T>, angle.high, x - x);
  return LargeReduction<X, std::remove_const_t<decltype(n)>>{{high, angle.low}, n};
}

/// sin(|x| + quarter pi/2).
template <class T, Lane X>
constexpr X sin_from_quarter(X x, BitsOf<T> quarter) {
  using C = ReduceConstants<T>;
  const X a = abs(x);
  const X shifted = fma(a, 2 * C::inverse_pi, round_magic<T>);
  const X r = subtract_multiple_of_pi(a, shifted - round_magic<T>, T{0.5});
  const X fast = sin_of_quadrant<T>(r, bitcast<BitsOf<T>>(shifted) + quarter);
  return if_any(!(a < C::limit), fast, [&] {
    const auto large = reduce_large<T>(x);
    return sin_of_quadrant<T>(large.angle.high, large.n + quarter);
  });
}

template <class T, Lane X>
constexpr X sin_of(X x) {
  return flip_sign<T>(sin_from_quarter<T>(x, 0), sign_of<T>(x));
}

template <class T, Lane X>
constexpr X cos_of(X x) {
  return sin_from_quarter<T>(x, 1);
}

/// tan(angle + n pi/2): tan(angle), or -1 / tan(angle) for odd n.
template <class T, Lane X, Lane U>
constexpr X tan_of_quadrant(SplitAngle<X> angle, U n) {
  const X r = angle.high, square = r * r;
  const X correction = fma(square, angle.low, angle.low);  // tan' = 1 + tan^2
  const X rest = fma(polynomial(square, tan_tail<T>), square * r, correction);
  const X t = r + rest, t_low = (r - t) + rest;
  const X one = parity_sign<T>(r, n);
  const auto odd = one < T{0};
  const X y = select(odd, one, t) / select(odd, t, one);
  return fma(y * y, t_low, y);  // (-1 / t)' = (-1 / t)^2; for even n too small to matter
}

template <class T, Lane X>
constexpr X tan_of(X x) {
  using C = ReduceConstants<T>;
  const X a = abs(x);
  const X shifted = fma(a, 2 * C::inverse_pi, round_magic<T>);
  const X n = shifted - round_magic<T>;
  const X fast =
      tan_of_quadrant<T>(split_multiple_of_pi(a, n, T{0.5}), bitcast<BitsOf<T>>(shifted));
  const X y = if_any(!(a < C::limit), fast, [&] {
    const auto large = reduce_large<T>(x);
    return tan_of_quadrant<T>(large.angle, large.n);
  });
  return flip_sign<T>(y, sign_of<T>(x));
}

}  // namespace math

/// Sine of an angle in radians, of any size; sin(-0) = -0.
template <Lane X>
constexpr X sin(X x) {
  return by_float_type(
      x, [](auto v) { return math::sin_of<float>(v); },
      [](auto v) { return math::sin_of<double>(v); });
}

/// Cosine of an angle in radians, of any size.
template <Lane X>
constexpr X cos(X x) {
  return by_float_type(
      x, [](auto v) { return math::cos_of<float>(v); },
      [](auto v) { return math::cos_of<double>(v); });
}

/// Tangent of an angle in radians, of any size; tan(-0) = -0.
template <Lane X>
constexpr X tan(X x) {
  return by_float_type(
      x, [](auto v) { return math::tan_of<float>(v); },
      [](auto v) { return math::tan_of<double>(v); });
}

}  // namespace nitinol
