// lgamma, digamma.
//
// Method, for x >= 0: from 8 on (digamma from 4 on) Stirling's series. Below, lgamma is
// (r - 1) (r - 2) P(v) with r in [0.7, 3), so that its zeros are exact, and v = (r - K) / (r + K),
// which maps the singularity at 0 as far away as infinity; r is x less an integer, and the
// logarithm of the factors between is added, or it is x + 1, less ln x. digamma is (x - zero) P(v)
// on [1, 4), the zero being a sum of two numbers, and below 1 that of x + 1, less 1 / x. Negative x
// are reflected. Polynomials: Chebyshev interpolation, relative error 2^-57.9 and 2^-57.4; of the
// series 2^-68.
//
// Near zeros of the negative axis terms cancel: there the error is that of the terms. f32 computes
// in f64, whose digits suffice there, too.
#pragma once

#include "core/math/log.h"
#include "core/math/trig.h"

#include <array>

namespace nitinol {
namespace math {

struct LgammaConstants {
  static constexpr double k = 1.45, lowest = 0.7, series = 8;
  static constexpr double half_ln_two_pi = 0.91893853320467274, ln_pi = 1.1447298858494002;
  static constexpr std::array p = {
      0.4905882454153815,   -0.44223420472633407, 0.12856885497105514,  -0.15224079289883868,
      0.0855303233909504,   -0.09391700780319195, 0.0639550309538432,   -0.06810667473691485,
      0.0509947355429235,   -0.05346412770516829, 0.04238029908397779,  -0.04401641954708545,
      0.03625702612007391,  -0.03742101959332936, 0.03154393440598538,  -0.03240618344615999,
      0.029259678405300006, -0.02998957685969283, 0.018592779836738037, -0.01887992450136237,
      0.043588861545316486, -0.044605801924140806};
  /// In powers of 1 / x^2, times 1 / x.
  static constexpr std::array tail = {
      0.08333333333333333,  -0.0027777777777776747, 0.0007936507935117282, -0.0005952380234291253,
      0.000841732526802233, -0.0019149659121622845, 0.006208136766203285,  -0.020855820837011485};
};
struct DigammaConstants {
  static constexpr double k = 2, series = 4;
  static constexpr double zero = 1.4616321449683622, zero_low = 9.549995429965697e-17;
  static constexpr std::array p = {
      0.7853075386041053,  -1.0429558187320058, 0.7010428535500491, -0.7262245808988469,
      0.6777531348973292,  -0.695067676658822,  0.6787474774711862, -0.6890177861516823,
      0.6806799474566279,  -0.6870426056267349, 0.6818507629688647, -0.6860940716908374,
      0.6825234793657126,  -0.685797514777505,  0.6831871031838831, -0.6817297287956705,
      0.6797420935264918,  -0.718990369520906,  0.7173805227339664, -0.48204544067831023,
      0.48101688388323066, -1.3343513024535765, 1.3325204900008019};
  /// In powers of 1 / x^2, times 1 / x^2.
  static constexpr std::array tail = {
      0.08333333333333333,  -0.00833333333333303,  0.003968253967978097, -0.004166666567471676,
      0.007575738830929716, -0.021090656989070724, 0.08317346207249471,  -0.4350126501453524,
      2.7488451489823826,   -18.072927577605736,   102.44982500794539,   -404.5319629294689,
      787.680007730884};
};

/// A fraction of half turns: pi times it is r + n pi/2, with its sign left out.
template <Lane X, Lane U>
struct HalfTurns {
  X fraction;  ///< in [-1/2, 1/2]
  SplitAngle<X> angle;
  U n;
};
/// Of x, without whole half turns.
template <Lane X>
constexpr auto half_turns_of(X x) {
  constexpr double pi = 3.1415926535897931, pi_low = 1.2246467991473532e-16;
  const X fraction = x - round_even(x), h = abs(fraction);
  const X shifted = h + h + round_magic<double>;
  const X d = h - (shifted - round_magic<double>)*0.5;
  const X r = d * pi;
  const X low = fma(d, constant<double>(x, pi_low), fma(d, constant<double>(x, pi), -r));
  const auto n = bitcast<uint64_t>(shifted);
  return HalfTurns<X, std::remove_const_t<decltype(n)>>{fraction, {r, low}, n};
}

/// Above it, only the pole at 0 counts.
inline constexpr double smallest_reflected = -0x1p-60;

/// Of x above smallest_reflected.
template <Lane X>
constexpr X lgamma_right(X x) {
  using C = LgammaConstants;
  const auto is_small = x < C::lowest, is_large = x >= C::series;
  X r = select(is_small, x + 1.0, x), product = constant<double>(x, 1);
  for (int i = 1; i <= 5; ++i) {
    const X less = x - static_cast<double>(i);
    const auto is_needed = less >= 2.0;
    r = select(is_needed, less, r);
    product = select(is_needed, product * less, product);
  }
  const X log = log_of<double>(select(is_small | is_large, abs(x), product));
  const X d = r - 1.0;  // d d - d = (r - 1) (r - 2)
  const X v = (r - C::k) / (r + C::k);
  const X near = fma(fma(d, d, -d), polynomial(v, C::p), select(is_small, -log, log));
  const X inverse = 1.0 / x;
  const X rest = fma(inverse, polynomial(inverse * inverse, C::tail),
                     constant<double>(x, C::half_ln_two_pi - 0.5));
  return select(is_large, fma(x - 0.5, log - 1.0, rest), near);
}

/// gamma(x) gamma(1 - x) = pi / sin(pi x).
template <Lane X>
constexpr X lgamma_f64_of(X x) {
  using C = LgammaConstants;
  const auto is_left = x < smallest_reflected;
  const X right = lgamma_right(select(is_left, 1.0 - x, x));
  const X y = if_any(is_left, right, [&] {
    const auto turns = half_turns_of(x);
    const X sine = sin_of_quadrant<double>(turns.angle.high, turns.n);
    const X left = C::ln_pi - log_of<double>(sine) - right;
    return select(turns.fraction == 0.0, infinity<double>, left);
  });
  return select(abs(x) == infinity<double>, infinity<double>, y);
}

/// Of x above smallest_reflected.
template <Lane X>
constexpr X digamma_right(X x) {
  using C = DigammaConstants;
  const auto is_small = x < 1.0;
  const X inverse = 1.0 / x;
  const X r = select(is_small, x + 1.0, x);
  const X v = (r - C::k) / (r + C::k);
  const X from_zero = (r - C::zero) - C::zero_low;
  const X divided = fma(-inverse, x, constant<double>(x, 1)) * inverse;
  const X lost = select(abs(inverse) < 4.0, divided, 0.0);  // by the division, where that is seen
  const X product = from_zero * polynomial(v, C::p);
  const X near = select(is_small, (product - lost) - inverse, product);
  const X log = finish_log<double>(reduce_log<double>(at_least(x, C::series)));
  const X square = inverse * inverse;
  const X far = log - fma(square, polynomial(square, C::tail), inverse * 0.5);
  return select(x < C::series, near, far);
}

/// digamma(1 - x) - digamma(x) = pi / tan(pi x), and 1 / tan(a) = -tan(a + pi/2).
template <Lane X>
constexpr X digamma_f64_of(X x) {
  constexpr double pi = 3.1415926535897931;
  const auto is_left = x < smallest_reflected;
  const X right = digamma_right(select(is_left, 1.0 - x, x));
  const X y = if_any(is_left, right, [&] {
    const auto turns = half_turns_of(x);
    const X cotangent = set_sign<double>(tan_of_quadrant<double>(turns.angle, turns.n + 1),
                                         sign_of<double>(turns.fraction));
    return select(turns.fraction == 0.0, quiet_nan<double>, right - cotangent * pi);
  });
  return select(x < infinity<double>, y, x);
}

}  // namespace math

/// ln(|gamma(x)|); infinite at 0, -1, -2, ... and at both infinities.
template <Lane X>
constexpr X lgamma(X x) {
  return by_float_type(
      x, [](auto v) { return convert<float>(math::lgamma_f64_of(convert<double>(v))); },
      [](auto v) { return math::lgamma_f64_of(v); });
}

/// The derivative of lgamma; infinite at 0, NaN at -1, -2, ... and at -infinity.
template <Lane X>
constexpr X digamma(X x) {
  return by_float_type(
      x, [](auto v) { return convert<float>(math::digamma_f64_of(convert<double>(v))); },
      [](auto v) { return math::digamma_f64_of(v); });
}

}  // namespace nitinol
