// erfinv.
//
// Method: y / x is a smooth function of w = -ln(1 - x^2) (M. Giles, Approximating the erfinv
// function, GPU Computing Gems Jade, 2011): sqrt(pi)/2 + w P(w) up to w = 4, and s + D(s) with
// s = sqrt(w) beyond. Polynomials: Chebyshev interpolation, relative error of y below 2^-35 (tail
// 2^-31) for f32, which computes in f64, and 2^-63 for f64. The tail of f64 is found to 2^-24 and
// improved by a step of Halley's method on erfc, whose errors hardly count there.
#pragma once

#include "core/math/erfc.h"
#include "core/math/log.h"

#include <array>

namespace nitinol {
namespace math {

/// The end of the center, and of which numbers the polynomials are: w - middle, s - tail_middle.
inline constexpr double erfinv_center_end = 4, erfinv_middle = 2;
inline constexpr double half_root_of_pi = 0.886226925452758,
                        half_root_low = -3.8332932499128993e-17;

template <class T>
struct ErfinvConstants;
template <>
struct ErfinvConstants<float> {
  static constexpr double tail_middle = 3;
  static constexpr std::array center = {
      0.24549414304113015,    0.002136962918840358,  -0.0020525534127439197,
      0.00018020244891690573, 1.786821186733986e-05, -5.143118645598555e-06,
      1.3372476257782203e-07, 9.138186359742028e-08, -1.085075514203629e-08,
      -9.122455240405101e-10, 2.492941248500705e-10, -2.6067064005404788e-12};
  static constexpr std::array tail = {
      -0.1670232012717293,    0.0016752781614312428,   0.009445530696751333,
      -0.00764385125886557,   0.005684939733242487,    -0.0035583361525785414,
      0.0014856686163564733,  -0.00015107115080461778, -0.0002896727353591673,
      0.00021106483952694637, -3.581704927919593e-05,  -3.074213063201742e-05,
      1.400760577268409e-05};
};
template <>
struct ErfinvConstants<double> {
  static constexpr double tail_middle = 4;
  static constexpr std::array center = {
      0.24549414303103023,     0.002136962919860296,   -0.0020525532308208385,
      0.00018020243052483377,  1.7867679377310797e-05, -5.1430645007699355e-06,
      1.3429690043713407e-07,  9.132299219048286e-08,  -1.1130421027582486e-08,
      -8.828120902737778e-10,  3.1324139876102895e-10, -9.661709512834523e-12,
      -5.7865901758680424e-12, 7.28312816201966e-13,   5.868609357259674e-14,
      -2.0992345330684494e-14, 6.028962262025444e-16,  3.9962081655866315e-16,
      -4.526213961149005e-17,  -4.414629013948204e-18, 9.51077045808794e-19};
  static constexpr std::array tail = {
      -0.1602162003438685,     0.009492803878840406,    0.0012599166261839292,
      -0.0008648181428520886,  0.00031999846172480395,  -0.000129026685697258,
      5.860413549873819e-05,   -1.9504546160225713e-05, 1.4879038141163928e-05,
      -1.6540707348437467e-05, 5.513265534382659e-06,   1.850896421632181e-06,
      -1.150708794035816e-06,  -2.397076301386278e-08,  5.558311546832916e-08};
};

/// -ln(1 - a^2) for 0 <= a < 1, and for others what it is just below 1.
template <Lane X>
constexpr X erfinv_argument(X a) {
  const X below = at_most(a, 0x1.fffffffffffffp-1);
  return -finish_log<double>(reduce_log<double>(fma(-below, below, constant<double>(a, 1))));
}

template <class T, Lane X>
constexpr X erfinv_center(X a, X w) {
  const X p = polynomial(w - erfinv_middle, ErfinvConstants<T>::center);
  const X rest = fma(w, p, constant<double>(a, half_root_low));
  return fma(a, constant<double>(a, half_root_of_pi), a * rest);
}

template <class T, Lane X>
constexpr X erfinv_tail(X a, X w) {
  using C = ErfinvConstants<T>;
  const X s = sqrt(w);
  return fma(a, s, a * polynomial(s - C::tail_middle, C::tail));
}

/// `y` with the sign of x; infinite where |x| is 1, NaN where it is more.
template <Lane X>
constexpr X finish_erfinv(X x, X a, X y) {
  const X beyond = select(a == 1.0, infinity<double>, constant<double>(x, quiet_nan<double>));
  return set_sign<double>(select(a < 1.0, y, beyond), sign_of<double>(x));
}

template <Lane X>
constexpr auto erfinv_f32_of(X narrow) {
  const auto x = convert<double>(narrow);
  const auto a = abs(x), w = erfinv_argument(a);
  const auto y =
      select(w > erfinv_center_end, erfinv_tail<float>(a, w), erfinv_center<float>(a, w));
  return convert<float>(finish_erfinv(x, a, y));
}

/// A step of Halley's method towards erfc(y) = 1 - a.
template <Lane X>
constexpr X improved_erfinv(X y, X a) {
  const X slope = exp_of<double>(-(y * y)) * (-1 / half_root_of_pi);
  const X step = (erfc_f64_of(y) - (1.0 - a)) / slope;
  return y - step / fma(step, y, constant<double>(y, 1));
}

template <Lane X>
constexpr X erfinv_f64_of(X x) {
  const X a = abs(x), w = erfinv_argument(a);
  const X y = if_any(w > erfinv_center_end, erfinv_center<double>(a, w),
                     [&] { return improved_erfinv(erfinv_tail<double>(a, w), a); });
  return finish_erfinv(x, a, y);
}

}  // namespace math

/// The number whose erf is x; infinite at 1 and -1, NaN beyond; erfinv(-0) = -0.
template <Lane X>
constexpr X erfinv(X x) {
  return by_float_type(
      x, [](auto v) { return math::erfinv_f32_of(v); },
      [](auto v) { return math::erfinv_f64_of(v); });
}

}  // namespace nitinol
