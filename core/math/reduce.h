// Arguments of trigonometric functions modulo pi.
//
// Problem: sin(x) for any finite x needs r = x - n pi to full relative accuracy.
//
// Small arguments (|x| below `limit`): Cody and Waite's subtraction of n pi in three parts, by fma.
// The first is exact, the others round relative to what is left.
//
// Large ones: Payne and Hanek. x = M 2^E with an integer M; of the product M 2^E / pi only the bits
// around the binary point matter: those of higher weight are multiples of 2, those far below do not
// reach the result. So M is multiplied by a window of the bits of 1/pi that starts at the weight
// 2^-E (the table's word 2 begins after the binary point), modulo 2^64 in the top word: 96 bits for
// f32, 192 for f64. Closest approach of a float to a multiple of pi/2: about 2^-30 (2^-61); the
// windows leave 2^-62 (2^-125).
#pragma once

#include "core/math/format.h"

namespace nitinol::math {

template <class T>
struct ReduceConstants;
template <>
struct ReduceConstants<float> {
  static constexpr float limit = 65536;
  static constexpr float inverse_pi = 0.318309886f;
  static constexpr float pi_high = 3.14159274f, pi_middle = -8.74227766e-8f,
                         pi_low = -3.43024902e-15f;
};
template <>
struct ReduceConstants<double> {
  static constexpr double limit = 0x1p26;
  static constexpr double inverse_pi = 0.3183098861837907;
  static constexpr double pi_high = 3.141592653589793, pi_middle = 1.2246467991473532e-16,
                          pi_low = -2.9947698097183397e-33;
};

/// x - n * step, step being pi * scale and scale a power of 2.
template <class T, Lane X>
constexpr X subtract_multiple_of_pi(X x, X n, T scale) {
  using C = ReduceConstants<T>;
  return fma(n, -C::pi_low * scale, fma(n, -C::pi_middle * scale, fma(n, -C::pi_high * scale, x)));
}

/// As before, with what the rounding of the result lost: x - n * step = high + low.
template <Lane X>
struct SplitAngle {
  X high, low;
};
template <class T, Lane X>
constexpr SplitAngle<X> split_multiple_of_pi(X x, X n, T scale) {
  using C = ReduceConstants<T>;
  const X coarse = fma(n, -C::pi_high * scale, x);
  const X product = n * (-C::pi_middle * scale);
  const X product_low = fma(n, -C::pi_middle * scale, -product);
  const X high = coarse + product;
  const X added = high - coarse;  // Knuth's two-sum: either term may be the larger
  const X lost = (coarse - (high - added)) + (product - added);
  return {high, fma(n, -C::pi_low * scale, lost + product_low)};
}

/// The product x / pi modulo 2: `high` has the weight 2^-63, `low` continues below it.
template <Lane U>
struct Turns {
  U high, low;
};

/// Word `index` and the next of the table, as a u64.
template <Lane U>
constexpr auto two_words(U index) {
  return (convert<uint64_t>(table<TableId::inverse_pi>(index)) << 32) |
         convert<uint64_t>(table<TableId::inverse_pi>(index + 1));
}

/// 64 bits of a:b starting `shift` (below 32) bits from the top.
template <Lane U>
constexpr U window(U a, U b, U shift) {
  return (a << shift) | ((b >> 1) >> (63 - shift));
}

/// x / pi mod 2 for |x| >= limit; meaningless (but defined) for others.
template <class T, Lane X>
constexpr auto turns_of(X x) {
  using F = Format<T>;
  const X large = select(abs(x) >= ReduceConstants<T>::limit, abs(x),
                         constant<T>(x, ReduceConstants<T>::limit));
  const auto bits = convert<uint64_t>(bitcast<BitsOf<T>>(large));
  const auto fraction_mask = (uint64_t{1} << F::mantissa) - 1;
  const auto m = (bits & fraction_mask) | (uint64_t{1} << F::mantissa);
  // The window starts 63 bits into the table for an x whose M has the weight 1.
  const auto start = convert<uint32_t>(bits >> F::mantissa) - (F::bias + F::mantissa - 63);
  const auto word = start >> 5;
  const auto shift = convert<uint64_t>(start & 31);
  const auto a = two_words(word), b = two_words(word + 2);
  if constexpr (sizeof(T) == 4) {
    const auto high = m * window(a, b, shift) + (m * ((b << shift) >> 32) >> 32);
    return Turns<std::remove_const_t<decltype(high)>>{high, high & 0};
  } else {
    const auto c = two_words(word + 4);
    const auto d = convert<uint64_t>(table<TableId::inverse_pi>(word + 6)) << 32;
    const auto w0 = window(a, b, shift), w1 = window(b, c, shift), w2 = window(c, d, shift);
    const auto product = m * w1;
    const auto low = product + mul_high(m, w2);
    const auto carry = convert<uint64_t>(low < product);
    const auto high = m * w0 + mul_high(m, w1) + carry;
    return Turns<std::remove_const_t<decltype(high)>>{high, low};
  }
}

/// The angle `step` * f, f in [-1/2, 1/2) being the signed 64-bit (128-bit) fraction.
template <class T, Lane X, Lane U>
constexpr SplitAngle<X> angle_of(X like, Turns<U> f, double step_high, double step_low) {
  if constexpr (sizeof(T) == 4) {
    const auto r = convert<double>(bitcast<int64_t>(f.high)) * (step_high * 0x1p-64);
    static_cast<void>(like);
    const X high = convert<float>(r);
    return {high, convert<float>(r - convert<double>(high))};
  } else {
    // The fraction as a sum of doubles: the first two are exact, then renormalised.
    const auto top = convert<double>(bitcast<int64_t>(f.high) >> 32) * 0x1p-32;
    const auto middle = convert<double>(bitcast<int64_t>(f.high & 0xffffffff)) * 0x1p-64;
    const auto sum = top + middle;
    const auto rest =
        (top - sum) + middle + convert<double>(bitcast<int64_t>(f.low >> 1)) * 0x1p-127;
    const auto r = sum * step_high;
    const auto error = fma(rest, step_high, fma(sum, step_low, fma(sum, step_high, -r)));
    const X high = r + error;
    return {high, (r - high) + error};
  }
}

}  // namespace nitinol::math
