// erfc.
//
// Method: as gelu's (core/math/gelu.h), without the factor x: erfc |x| = e^(-x^2) h(|x|), h(a) =
// v P(v) with v = 1 / (a + K), which does not cancel on the right, and 2 - erfc |x| for x < 0.
// Polynomials: Remez, relative error 2^-29.1 for f32, 2^-60.8 for f64. f32 computes in f64.
#pragma once

#include "core/math/gelu.h"

#include <array>

namespace nitinol {
namespace math {

/// As GeluConstants.
template <class T>
struct ErfcConstants;
template <>
struct ErfcConstants<float> {
  static constexpr double limit = 10.2, k = 3, slope = 7.8, offset = -1.6;
  static constexpr std::array p = {
      1.3134711761208522,     0.9320437304931041,     0.5009239004670828,    0.19775732189080858,
      0.051862206243409883,   0.005785940369891368,   -0.001363727701186134, -0.0005345696389898019,
      2.2281574548030587e-05, 3.1126377131626275e-05, 6.188410928803749e-07};
};
template <>
struct ErfcConstants<double> {
  static constexpr double limit = 27.5, k = 4, slope = 9, offset = -1.25;
  static constexpr double p0 = 1.214842297045567, p1 = 1.0403205418608592;
  static constexpr std::array p = {
      0.7747730544779976,      0.4997961599209801,      0.2765631719473157,
      0.12887750057746353,     0.04884400430301638,     0.013962430683376664,
      0.0023775766338710014,   -0.00011904044758168198, -0.0002051193446392074,
      -4.4210052487148334e-05, 6.7571674995726885e-06,  5.128554340405625e-06,
      2.293632027984926e-07,   -4.5600058928815243e-07, -7.27860389137594e-08,
      4.0604821878977966e-08,  1.0107195008125853e-08,  -3.9541667474029726e-09,
      -1.1055794300711048e-09, 3.9329738164927136e-10,  7.783258913831498e-11,
      -2.755448837698062e-11};
  /// What rounding lost of the first coefficients, and the derivative of P, to a few digits.
  static constexpr std::array lost = {6.392e-17, -9.211e-18, 2.974e-17, 3.11e-18, -6.492e-18};
  static constexpr std::array dp = {1.04, 1.55, 1.499, 1.106, 0.6444, 0.2931, 0.09774, 0.01902};
};

template <Lane X>
constexpr auto erfc_f32_of(X narrow) {
  using C = ErfcConstants<float>;
  const auto x = convert<double>(narrow);
  const auto a = at_most(abs(x), C::limit);
  const auto [shifted, r] = reduce_exp<double>(-(a * a));
  const auto e = fma(fma(polynomial(r, GeluConstants<float>::tail), r, 1.0), r, 1.0) *
                 power_of_two<double>(shifted);
  const auto v = 1.0 / (a + C::k);
  const auto right = v * polynomial(fma(v, C::slope, C::offset), C::p) * e;
  return convert<float>(select(x < 0.0, 2.0 - right, right));
}

/// h(a) as a sum of two. As in gelu, but the last two steps of the polynomial, whose terms cancel
/// for large a, keep what they lose.
template <Lane X>
constexpr Pair<X> erfc_factor(X a) {
  using C = ErfcConstants<double>;
  const auto [v, v_low, w, w_low] = tail_arguments<C>(a);
  const Pair<X> part = exact_product(w, polynomial(w, C::p));
  const Pair<X> inner = exact_sum(part.high, constant<double>(a, C::p1));
  const Pair<X> product = exact_product(w, inner.high);
  const Pair<X> p = exact_sum(product.high, constant<double>(a, C::p0));
  const X rest = (p.low + product.low) + polynomial(w, C::lost);
  const X lost = fma(w, inner.low + part.low, rest);
  const X p_low = fma(polynomial(w, C::dp), w_low, lost);
  const Pair<X> h = exact_product(v, p.high);
  return {h.high, h.low + fma(v, p_low, v_low * p.high)};
}

template <Lane X>
constexpr X erfc_f64_of(X x) {
  using C = ErfcConstants<double>;
  const X a = at_most(abs(x), C::limit);
  const Pair<X> square = exact_product(-a, a);
  const ExpParts<X> e = precise_exp_parts<double>(square.high, square.low);
  const Pair<X> h = erfc_factor(a);
  const Pair<X> y = exact_product(h.high, e.high);
  const X y_low = fma(h.high, e.low, fma(h.low, e.high, y.low));
  const auto is_tiny = is_negligible(e.shifted);
  const X scale = raised_power(e.shifted, is_tiny);
  const X raised = (y.high + y_low) * scale;
  const X right = select(is_tiny, raised * (1 / gelu_raise), raised);
  const X left = 2.0 - select(is_tiny, 0.0, raised);
  return select(x < 0.0, left, right);
}

}  // namespace math

/// 1 - erf(x), without cancellation.
template <Lane X>
constexpr X erfc(X x) {
  return by_float_type(
      x, [](auto v) { return math::erfc_f32_of(v); }, [](auto v) { return math::erfc_f64_of(v); });
}

}  // namespace nitinol
