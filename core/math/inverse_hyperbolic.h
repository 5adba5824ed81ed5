// asinh, acosh, atanh.
//
// Small arguments: polynomials (of acosh, one that sqrt(2 (x - 1)) is multiplied by). Others: the
// logarithm of a sum of two numbers, as that of the rounded x + sqrt(x^2 + 1) would be off by an
// ulp before its own error. Polynomials: Remez, relative error below 2^-27.8 (f64: 2^-57.8).
#pragma once

#include "core/math/log.h"
#include "core/math/sigmoid.h"

#include <array>

namespace nitinol {
namespace math {

/// (asinh(x) / x - 1) / x^2 in powers of x^2, x <= 1/2.
template <class T>
inline constexpr auto asinh_tail = std::array{
    -1.666664332e-01f, 7.498653233e-02f, -4.438465461e-02f, 2.816961892e-02f, -1.323810685e-02f};
template <>
inline constexpr auto asinh_tail<double> = std::array{
    -0.1666666666666661,   0.07499999999984416,  -0.04464285712783112,  0.03038194371638098,
    -0.02237213835806518,  0.017352386954596493, -0.013960232273427872, 0.011512984283264598,
    -0.009534143470481182, 0.007465601493759188, -0.004747512742171785, 0.0017180821266509758};
/// (acosh(1 + t) / sqrt(2 t) - 1) / t in powers of t, t <= 1/2.
template <class T>
inline constexpr auto acosh_tail = std::array{
    -8.333321661e-02f, 1.874665916e-02f, -5.548233166e-03f, 1.760971849e-03f, -4.140024248e-04f};
template <>
inline constexpr auto acosh_tail<double> = std::array{
    -0.08333333333333305,    0.018749999999961554,  -0.0055803571409994875,  0.0018988714826857498,
    -0.0006991293284806463,  0.0002711310812390023, -0.0001090644829740992,  4.497313248938669e-05,
    -1.8622506213027617e-05, 7.292136847453107e-06, -2.3192778977259578e-06, 4.198407737670503e-07};
/// (atanh(x) / x - 1) / x^2 in powers of x^2, x <= 1/2.
template <class T>
inline constexpr auto atanh_tail = std::array{3.333330154e-01f, 2.000251561e-01f, 1.422280222e-01f,
                                              1.182343811e-01f, 5.136749521e-02f, 1.766804755e-01f};
template <>
inline constexpr auto atanh_tail<double> =
    std::array{0.3333333333333328,  0.2000000000001812,  0.1428571428343946,   0.11111111255234171,
               0.09090903688056323, 0.07692438429701855, 0.0666451646953514,   0.05907127173261137,
               0.05060205233256982, 0.05945334504167516, -0.00494491699639012, 0.17405012497259018,
               -0.1949264377751514, 0.24041658798843416};

/// ln(2^doublings (high + low)); `high` is positive and normal.
template <class T, Lane X>
constexpr X log_of_sum(X high, X low, X doublings) {
  using C = LogConstants<T>;
  const auto [plain_k, f] = reduce_log<T>(high);
  const X minus_k = plain_k - doublings;
  const X square_part = f * f * polynomial(f, C::tail) + low / high;
  const X small = f + fma(minus_k, -C::ln2_low, square_part);
  return fma(minus_k, -C::ln2_high, small);
}

/// ln(a + sqrt(a^2 + sign)), for a >= 1/2 and a^2 + sign >= 1.
template <class T, Lane X>
constexpr X log_with_root(X a, T sign) {
  constexpr T large = sizeof(T) == 4 ? T{0x1p15} : T{0x1p30};  // beyond, the root is a
  const X c = at_most(a, large);
  const Pair<X> product = exact_product(c, c);
  const Pair<X> square = exact_sum(product.high, constant<T>(a, sign));
  const X root = sqrt(square.high);
  const X root_low = (fma(-root, root, square.high) + (square.low + product.low)) / (root + root);
  const Pair<X> sum = exact_sum(c, root);
  const auto is_large = a > large;
  const X one = constant<T>(a, 1), zero = constant<T>(a, 0);
  const X y =
      log_of_sum<T>(select(is_large, a, sum.high), select(is_large, zero, sum.low + root_low),
                    select(is_large, one, zero));
  return select(a == infinity<T>, a, y);
}

template <class T, Lane X>
constexpr X asinh_of(X x) {
  const X a = abs(x), square = a * a;
  const X near_0 = fma(a * square, polynomial(square, asinh_tail<T>), a);
  const X y = select(a < T{0.5}, near_0, log_with_root<T>(a, T{1}));
  return set_sign<T>(y, sign_of<T>(x));
}

template <class T, Lane X>
constexpr X acosh_of(X x) {
  const X t = x - T{1};
  const X root = sqrt(t + t);
  const X near_1 = fma(root * t, polynomial(t, acosh_tail<T>), root);
  return select(x < T{1.5}, near_1, log_with_root<T>(x, T{-1}));
}

/// (1 + a) / (1 - a), of whose parts the second is exact from 1/2 on.
template <class T, Lane X>
constexpr X atanh_of(X x) {
  const X a = abs(x), square = a * a;
  const X near_0 = fma(a * square, polynomial(square, atanh_tail<T>), a);
  const X above = a + T{1}, above_low = a - (above - T{1}), below = T{1} - a;
  const X ratio = above / below;
  const X ratio_low = (fma(-ratio, below, above) + above_low) / below;
  const X log = log_of_sum<T>(ratio, ratio_low, constant<T>(x, 0)) * T{0.5};
  const X end = select(a == T{1}, constant<T>(x, infinity<T>), constant<T>(x, quiet_nan<T>));
  const X y = select(a < T{0.5}, near_0, select(a < T{1}, log, end));
  return set_sign<T>(y, sign_of<T>(x));
}

}  // namespace math

/// Inverse hyperbolic sine; asinh(-0) = -0.
template <Lane X>
constexpr X asinh(X x) {
  return by_float_type(
      x, [](auto v) { return math::asinh_of<float>(v); },
      [](auto v) { return math::asinh_of<double>(v); });
}

/// Inverse hyperbolic cosine; NaN below 1.
template <Lane X>
constexpr X acosh(X x) {
  return by_float_type(
      x, [](auto v) { return math::acosh_of<float>(v); },
      [](auto v) { return math::acosh_of<double>(v); });
}

/// Inverse hyperbolic tangent; infinite at 1 and -1, NaN beyond; atanh(-0) = -0.
template <Lane X>
constexpr X atanh(X x) {
  return by_float_type(
      x, [](auto v) { return math::atanh_of<float>(v); },
      [](auto v) { return math::atanh_of<double>(v); });
}

}  // namespace nitinol
