// sin, cos, tan.
//
// Method: sin x = (-1)^n sin(x - n pi) and cos x = (-1)^(n+1) sin(x - (n + 1/2) pi) with the
// argument in [-pi/2, pi/2]: one polynomial for both (core/math/reduce.h for the reduction).
// tan x = tan(r) or -1 / tan(r) with r in [-pi/4, pi/4]. Signs are put on at the end: an fma that
// adds a product to -0 would lose it. Polynomials: Remez, relative error below 2^-27.2 (f64:
// 2^-61.6; tan 2^-29.4, 2^-56.2).
#pragma once

#include "core/math/format.h"
#include "core/math/reduce.h"

#include <array>

namespace nitinol {
namespace math {

/// (sin(r) / r - 1) / r^2 in powers of r^2.
template <class T>
inline constexpr auto sin_tail =
    std::array{-1.666665971e-01f, 8.333060890e-03f, -1.980921807e-04f, 2.604882411e-06f};
template <>
inline constexpr auto sin_tail<double> =
    std::array{-0.16666666666666666,   0.008333333333333194,    -0.0001984126984120922,
               2.7557319211137254e-06, -2.5052106872795556e-08, 1.6058939705392428e-10,
               -7.642991472967658e-13, 2.7211747648785615e-15};

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

/// r + r^3 tail(r^2).
template <Lane X, class T, std::size_t n>
constexpr X odd_polynomial(X r, const std::array<T, n>& tail) {
  const X square = r * r;
  return fma(polynomial(square, tail), square * r, r);
}

/// r, negated if the lowest bit of `n` is set: sin of it is sin(r + n pi).
template <class T, Lane X, Lane U>
constexpr X with_parity(X r, U n) {
  return flip_sign<T>(r, n << (sizeof(T) * 8 - 1));
}

/// An r in [-pi/2, pi/2] with sin(r) = sin |x| (quarter = 0) or cos |x| (quarter = 1), x large.
template <class T, Lane X>
constexpr X reduce_large(X x, uint64_t quarter) {
  const auto turns = turns_of<T>(x);
  const auto high = turns.high + (quarter << 62);
  const auto nearest = (high + (uint64_t{1} << 62)) >> 63;
  const auto fraction = Turns<decltype(turns.low)>{(high << 1) | (turns.low >> 63), turns.low << 1};
  const X r =
      angle_of<T>(x, fraction, ReduceConstants<double>::pi_high, ReduceConstants<double>::pi_middle)
          .high;
  return select(abs(x) < infinity<T>, with_parity<T>(r, convert<BitsOf<T>>(nearest)), x - x);
}

template <class T, Lane X>
constexpr X sin_of(X x) {
  using C = ReduceConstants<T>;
  const X a = abs(x);
  const X shifted = fma(a, C::inverse_pi, round_magic<T>);
  const X n = shifted - round_magic<T>;
  const X fast = with_parity<T>(subtract_multiple_of_pi(a, n, T{1}), bitcast<BitsOf<T>>(shifted));
  const X r = if_any(!(a < C::limit), fast, [&] { return reduce_large<T>(x, 0); });
  return flip_sign<T>(odd_polynomial(r, sin_tail<T>), sign_of<T>(x));
}

template <class T, Lane X>
constexpr X cos_of(X x) {
  using C = ReduceConstants<T>;
  const X a = abs(x);
  const X shifted = fma(a, C::inverse_pi, T{-0.5}) + round_magic<T>;
  const X n = (shifted - round_magic<T>)+T{0.5};
  const X minus_r = subtract_multiple_of_pi(-a, -n, T{1});
  const X fast = with_parity<T>(minus_r, bitcast<BitsOf<T>>(shifted));
  const X r = if_any(!(a < C::limit), fast, [&] { return reduce_large<T>(x, 1); });
  return odd_polynomial(r, sin_tail<T>);
}

/// tan(high + low), or -1 / tan if the lowest bit of `n` is set. The part of the angle lost to
/// rounding matters, because the quotient rounds once more.
template <class T, Lane X, Lane U>
constexpr X tan_with_parity(SplitAngle<X> angle, U n) {
  const X r = angle.high, square = r * r;
  const X correction = fma(square, angle.low, angle.low);  // tan' = 1 + tan^2
  const X t = r + fma(polynomial(square, tan_tail<T>), square * r, correction);
  const X one = flip_sign<T>(constant<T>(r, 1), n << (sizeof(T) * 8 - 1));
  const auto odd = one < T{0};
  return select(odd, one, t) / select(odd, t, one);
}

template <class T, Lane X>
constexpr X tan_large(X x) {
  const auto turns = turns_of<T>(x);
  const auto nearest = ((turns.high << 1) + (uint64_t{1} << 62)) >> 63;
  const auto fraction =
      Turns<decltype(turns.low)>{(turns.high << 2) | (turns.low >> 62), turns.low << 2};
  const auto angle = angle_of<T>(x, fraction, ReduceConstants<double>::pi_high / 2,
                                 ReduceConstants<double>::pi_middle / 2);
  const X y = tan_with_parity<T>(angle, convert<BitsOf<T>>(nearest));
  return select(abs(x) < infinity<T>, y, x - x);
}

template <class T, Lane X>
constexpr X tan_of(X x) {
  using C = ReduceConstants<T>;
  const X a = abs(x);
  const X shifted = fma(a, 2 * C::inverse_pi, round_magic<T>);
  const X n = shifted - round_magic<T>;
  const X fast =
      tan_with_parity<T>(split_multiple_of_pi(a, n, T{0.5}), bitcast<BitsOf<T>>(shifted));
  const X y = if_any(!(a < C::limit), fast, [&] { return tan_large<T>(x); });
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
