// pow.
//
// Problem: x^y = 2^(y log2 x) with |y log2 x| up to 128 (1024) needs log2 x to 8 (11) bits more
// than the result has. Method: log2 x as an unevaluated sum high + low. x = 2^k m; s = f / (2 + f)
// with f = m - 1, as a sum from one division and its remainder; ln(1+f) = 2 s (1 + z/3 + z^2 p(z)),
// z = s^2, where only z^2 p(z) needs no low part. The product with y keeps its low part, too.
// Relative error of log2 x: about 2^-35 (f64: 2^-67). The error-free transformations are Dekker's
// and Knuth's, with fma. Everything but a positive normal x and a finite y is one rare case.
//
// The exponents that people write, and those of their gradients, are products and roots; a loop
// over vectors whose exponents all are such does nothing else. What an exponent gives depends on
// nothing but itself and x, wherever it comes from.
#pragma once

#include "core/math/exp.h"
#include "core/math/log.h"

#include <array>

namespace nitinol {
namespace math {

template <class T>
struct PowConstants;
template <>
struct PowConstants<float> {
  static constexpr float third_high = 3.333333433e-01f, third_low = -9.934107463e-09f;
  static constexpr float two_log2e_high = 2.885390043e+00f, two_log2e_low = 3.851925982e-08f;
  /// (atanh(s) / s - 1 - z/3) / z^2, error below 2^-36.7 of the whole.
  static constexpr std::array tail = {2.000007629e-01f, 1.427356750e-01f, 1.170928776e-01f};
};
template <>
struct PowConstants<double> {
  static constexpr double third_high = 0.3333333333333333, third_low = 1.850371707708594e-17;
  static constexpr double two_log2e_high = 2.8853900817779268,
                          two_log2e_low = 4.0710547481862066e-17;
  /// Error below 2^-73 of the whole.
  static constexpr std::array tail = {0.1999999999999999,  0.1428571428572255,  0.11111111108769652,
                                      0.09090909434985787, 0.07692278447094453, 0.06668158265785544,
                                      0.05837418235987937, 0.05994431853359745};
};

/// high + low.
template <Lane X>
struct Sum {
  X high, low;
};

/// log2 of a reduced number.
template <class T, Lane X>
constexpr Sum<X> split_log2(LogReduction<X> in) {
  using C = PowConstants<T>;
  const X f = in.f, d = f + T{2}, d_low = f - (d - T{2});
  const X reciprocal = T{1} / d;
  const X s = f * reciprocal;
  const X s_low = fma(-s, d_low, fma(-s, d, f)) * reciprocal;
  const X z = s * s;
  const X z_low = fma(s + s, s_low, fma(s, s, -z));
  const X w = z * C::third_high;
  const X w_low = fma(z * z, polynomial(z, C::tail),
                      fma(z_low, C::third_high, fma(z, C::third_low, fma(z, C::third_high, -w))));
  const X p = s * w;
  const X p_low = fma(s, w_low, fma(s_low, w, fma(s, w, -p)));
  const X atanh = s + p;
  const X atanh_low = ((s - atanh) + p) + (p_low + s_low);
  const X scaled = atanh * C::two_log2e_high;
  const X scaled_low = fma(atanh_low, C::two_log2e_high,
                           fma(atanh, C::two_log2e_low, fma(atanh, C::two_log2e_high, -scaled)));
  const X high = scaled - in.minus_k;
  const X low = scaled_low - ((in.minus_k + high) - scaled);
  const X log2 = high + low;  // low has z^2 p(z) in it, far more than half an ulp of high
  return {log2, (high - log2) + low};
}

/// What y * log2_x has beyond `product`, that of the high part; NaN if and only if y is not finite.
template <Lane X>
constexpr X rest_of_product(X y, Sum<X> log2_x, X product) {
  return fma(y, log2_x.low, fma(y, log2_x.high, -product));
}

/// 2^(high + low).
template <class T, Lane X>
constexpr X exp2_of_sum(X high, X low) {
  using F = Format<T>;
  constexpr T lowest = -(F::bias + F::mantissa + 10), overflow = F::bias + 1;
  const X e = at_most(at_least(high, lowest), overflow + T{2});
  // Beyond these limits the low part may be anything, and does not matter.
  const X e_low = select(e == high, low, T{0});
  const X shifted = e + round_magic<T>;
  const X r = (e - (shifted - round_magic<T>)) + e_low;
  const X p = fma(polynomial(r, ExpConstants<T>::exp2_tail), r, T{1});
  const X result = scale_down_to_denormal<T>(p, shifted, e < T{3 - F::bias});
  return select((e - overflow) + e_low < T{0}, result, constant<T>(e, infinity<T>));
}

/// The rest of pow: |x| from a reduction that takes denormals, then the cases of C's annex F.
template <class T, Lane X>
constexpr X pow_rare(X x, X y) {
  const X a = abs(x);
  const auto is_extreme = (a == T{0}) | (a == infinity<T>) | (abs(y) == infinity<T>);
  const X ordinary_a = select(is_extreme | (a != a), constant<T>(x, 1), a);
  const X ordinary_y = select(is_extreme | (y != y), constant<T>(x, 1), y);
  constexpr T raise = static_cast<T>(uint64_t{1} << (Format<T>::mantissa + 1));
  const auto denormal = ordinary_a < std::numeric_limits<T>::min();
  auto in = reduce_log<T>(select(denormal, ordinary_a * raise, ordinary_a));
  in.minus_k = select(denormal, in.minus_k + T{Format<T>::mantissa + 1}, in.minus_k);
  const Sum<X> log2_x = split_log2<T>(in);
  const X product = ordinary_y * log2_x.high;
  const X ordinary = exp2_of_sum<T>(product, rest_of_product(ordinary_y, log2_x, product));
  const X limit = select((a > T{1}) == (y > T{0}), constant<T>(x, infinity<T>), constant<T>(x, 0));
  const X size = select(is_extreme, select(a == T{1}, constant<T>(x, 1), limit), ordinary);

  const X half = y * T{0.5};
  const auto is_integer = trunc(y) == y;
  const auto is_odd = is_integer & (trunc(half) != half);
  const auto negative = bitcast<BitsOf<T>>(x) & sign_bit<T>;
  const X with_sign = select(is_odd, flip_sign<T>(size, negative), size);
  const auto undefined = (x < T{0}) & (x > -infinity<T>)&(!is_integer);
  const auto is_nan = (x != x) | (y != y) | undefined;
  const auto is_one = (x == T{1}) | (y == T{0});
  return select(is_one, constant<T>(x, 1), select(is_nan, constant<T>(x, quiet_nan<T>), with_sign));
}

/// x^y by logarithms; `other` lanes may have any result.
template <class T, Lane X, Lane Condition>
constexpr X pow_general(X x, X y, Condition other) {
  constexpr BitsOf<T> smallest = BitsOf<T>{1} << Format<T>::mantissa;
  const auto is_normal = bitcast<BitsOf<T>>(x) - smallest < infinity_bits<T> - smallest;
  const Sum<X> log2_x = split_log2<T>(reduce_log<T>(x));
  const X product = y * log2_x.high;
  const X low = rest_of_product(y, log2_x, product);
  const auto usual = is_normal & (low == low);
  return if_any(!(usual | other), exp2_of_sum<T>(product, low), [&] { return pow_rare<T>(x, y); });
}

/// x^(1/2).
template <class T, Lane X>
constexpr X square_root(X x) {
  return select(x == -infinity<T>, constant<T>(x, infinity<T>), sqrt(x + T{0}));
}

/// For y = 1/2, -1/2, -1 and -2. (1/x)^2 and not 1/x^2, which underflows too early.
template <class T, Lane X>
constexpr X pow_root(X x, X y) {
  const X base = unless_all(abs(y) != T{0.5}, x, [&] { return square_root<T>(x); });
  return unless_all(y == T{0.5}, base, [&] {
    const X inverse = T{1} / base;
    return select(y == T{-2}, inverse * inverse, inverse);
  });
}

/// For y = 1, 2, 3 and those of pow_root.
template <class T, Lane X>
constexpr X pow_simple(X x, X y) {
  const X square = x * x;
  const X product = select(y == T{1}, x, select(y == T{2}, square, square * x));
  return unless_all(y >= T{1}, product, [&] { return pow_root<T>(x, y); });
}

/// pow_simple for a y that is known beforehand, without a branch.
template <class T, double y, Lane X>
constexpr X pow_known(X x) {
  if constexpr (y == 1) {
    return x;
  } else if constexpr (y == 2) {
    return x * x;
  } else if constexpr (y == 3) {
    return x * x * x;
  } else if constexpr (y == 0.5) {
    return square_root<T>(x);
  } else if constexpr (y == -0.5) {
    return T{1} / square_root<T>(x);
  } else {
    static_assert(y == -1 || y == -2);
    const X inverse = T{1} / x;
    if constexpr (y == -2) return inverse * inverse;
    return inverse;
  }
}

/// Whether pow_simple is for y. All that have more than two bits are told by one instruction.
template <class T, Lane X>
constexpr auto is_simple(X y) {
  constexpr BitsOf<T> rest = (BitsOf<T>{1} << (Format<T>::mantissa - 1)) - 1;
  return both((bitcast<BitsOf<T>>(y) & rest) == BitsOf<T>{0}, [&] {
    const X size = abs(y);
    return (size == T{2}) | (size == T{1}) | (size == T{0.5}) | (y == T{3});
  });
}

template <class T, Lane X>
constexpr X pow_of(X x, X y) {
  const auto simple = is_simple<T>(y);
  return either(
      x, simple, [&] { return pow_simple<T>(x, y); }, [&] { return pow_general<T>(x, y, simple); });
}

/// The exponents that pow decides by products and roots.
inline constexpr std::array simple_exponents = {1.0, 2.0, 3.0, 0.5, -0.5, -1.0, -2.0};

/// pow for one of these.
template <double y, Lane X>
constexpr X pow_at(X x) {
  return by_float_type(
      x, [](auto v) { return pow_known<float, y>(v); },
      [](auto v) { return pow_known<double, y>(v); });
}

/// pow for exponents that are none of these, in native loops.
template <Lane X>
constexpr X pow_of_others(X x, X y) {
  const decltype(x == y) none = false;
  return by_float_type(
      x, [&](auto v) { return pow_general<float>(v, y, none); },
      [&](auto v) { return pow_general<double>(v, y, none); });
}

}  // namespace math

/// x^y for floating point, with the special cases of C (annex F): pow(x, 0) = pow(1, y) = 1, even
/// for NaN; NaN for a finite negative x and a y that is no integer. x * x for 2, x * x * x for 3,
/// 1 / x for -1.
template <Lane X>
constexpr X pow(X x, X y) {
  return by_float_type(
      x, [&](auto v) { return math::pow_of<float>(v, y); },
      [&](auto v) { return math::pow_of<double>(v, y); });
}

}  // namespace nitinol
