// erf.
//
// Method: erf |x| = 1 - e^-w with w = -ln(erfc |x|), which is close to a parabola: w / |x| is a
// smooth function, and one polynomial of it serves the whole range. 1 - e^-w forgives relative
// errors of w (factor w / (e^w - 1) <= 1), so the polynomial was fitted (Remez) with that weight:
// error of the result below 2^-27.9 (f64: 2^-55.3). w is computed as |x| + |x| (w / |x| - 1), which
// rounds once, and what that loses goes into the exponential.
#pragma once

#include "core/math/exp.h"

#include <array>

namespace nitinol {
namespace math {

template <class T>
struct ErfConstants;
template <>
struct ErfConstants<float> {
  static constexpr float limit = 3.95f;  ///< erf is 1 from 3.92 on
  static constexpr std::array tail = {1.283791661e-01f,  6.366193891e-01f,  1.027778313e-01f,
                                      -1.915306412e-02f, -1.603948622e-04f, 1.667026081e-03f,
                                      -6.328360178e-04f, 1.176410224e-04f,  -9.256235899e-06f};
};
template <>
struct ErfConstants<double> {
  static constexpr double limit = 6;
  static constexpr std::array tail = {
      0.1283791670955126,      0.6366197723675909,      0.1027726033013153,
      -0.019128446993091196,   -0.00020919485396959483, 0.0016962076702396417,
      -0.0005901324320802092,  2.5904506566162072e-05,  6.442045482775263e-05,
      -2.9575635180517437e-05, 3.169624538113713e-06,   3.1330163939715976e-06,
      -2.037237808233394e-06,  5.706681122867015e-07,   -1.172862882238781e-08,
      -6.572429081704527e-08,  3.458153969698362e-08,   -1.0772421433054883e-08,
      2.360312775434682e-09,   -3.760378260887546e-10,  4.301383240668279e-11,
      -3.3640140654705516e-12, 1.614698518791312e-13,   -3.5917840998455775e-15};
};

template <class T, Lane X>
constexpr X erf_of(X x) {
  using C = ErfConstants<T>;
  const X a = at_most(abs(x), C::limit);
  const X p = polynomial(a, C::tail);
  const X minus_w = fma(-a, p, -a);
  const X lost = fma(-a, p, -a - minus_w);  // by rounding; without it 2 ulp would not hold
  return set_sign<T>(expm1_of_sum<T>(minus_w, lost), sign_of<T>(x));
}

}  // namespace math

/// The error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x; erf(-0) = -0.
template <Lane X>
constexpr X erf(X x) {
  return by_float_type(
      x, [](auto v) { return math::erf_of<float>(v); },
      [](auto v) { return math::erf_of<double>(v); });
}

}  // namespace nitinol
