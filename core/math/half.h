// f16 and bf16, which no compiler sees: 16-bit integers, converted by integer instructions.
//
// To 16 bits: round to nearest, ties to even, by adding half a unit (less one for even) below the
// kept bits; a carry runs into the exponent, as it should, up to infinity. Denormal f16 results are
// rounded by adding 1/2, whose unit is that of f16's denormals. NaN stays a NaN.
#pragma once

#include "core/math/compare.h"
#include "core/math/format.h"

#include <bit>

namespace nitinol {
namespace math {

/// Of the native types: those whose values are all f32 numbers.
template <class T>
inline constexpr bool is_exact_in_float = sizeof(T) <= 2 || std::is_same_v<T, float>;

/// Without the lowest `count` bits, rounded to odd: where any of them was set, the last one kept
/// is.
template <int count, Lane X>
constexpr X to_odd(X bits) {
  constexpr int64_t rest = (int64_t{1} << count) - 1;
  return (bits | ((bits & rest) + rest)) & ~rest;
}

/// 16 digits, so that no denormal f32 that matters to a bf16 is rounded again.
template <Lane X>
constexpr auto odd_float_of_double(X value) {
  return convert<float>(bitcast<double>(to_odd<37>(bitcast<uint64_t>(value))));
}

/// Of a 32-bit integer. The smallest one, which has no |value|, is exact too.
template <Lane X>
constexpr auto odd_float_of_int(X value) {
  return convert<float>(select(abs(value) < (1 << 24), value, to_odd<8>(value)));
}

/// Of a 64-bit integer. Vector units convert none: each half becomes the last bits of a double.
template <Lane X>
constexpr auto odd_float_of_long(X value, bool is_signed) {
  const auto digits = select(abs(value) < (int64_t{1} << 53), value, to_odd<11>(value));
  const auto bits = bitcast<uint64_t>(digits);
  const auto low = bitcast<double>((bits & 0xffffffff) | std::bit_cast<uint64_t>(0x1p52));
  const double lowest = is_signed ? 0x1p63 : 0;
  const auto high = bitcast<double>((bits >> 32) ^ std::bit_cast<uint64_t>(0x1p84 + lowest));
  return odd_float_of_double((high - (0x1p84 + lowest + 0x1p52)) + low);
}

}  // namespace math

/// `value` as f32, such that rounding that to f16 or bf16 rounds `value` once: what has more digits
/// than f32, or than 16, is rounded to odd before (S. Boldo, G. Melquiond, "Emulation of FMA and
/// correctly rounded sums", 2008). By the bits of one width: vector units know few conversions, and
/// compilers few of their conditions.
template <Lane X>
constexpr auto to_odd_float(X value) {
  using T = Element<X>;
  if constexpr (std::is_same_v<T, void>) {
    if (is_float(value.type)) return math::odd_float_of_double(value);
    if (size_of(value.type) == 4) return math::odd_float_of_int(value);
    return math::odd_float_of_long(value, is_signed_integer(value.type));
  } else if constexpr (math::is_exact_in_float<T>) {
    return convert<float>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return math::odd_float_of_double(value);
  } else if constexpr (sizeof(T) == 4) {
    return math::odd_float_of_int(value);
  } else {
    return math::odd_float_of_long(value, std::is_signed_v<T>);
  }
}

/// The f32 value of the f16 with bits `half` (u16 lane); exact.
template <Lane X>
constexpr auto half_to_float(X half) {
  const auto bits = convert<uint32_t>(half);
  const auto magnitude = bits & 0x7fff;
  // The exponent is biased by 15 here and by 127 there; a product moves denormals, too.
  const auto finite = bitcast<uint32_t>(bitcast<float>(magnitude << 13) * 0x1p112f);
  const auto special = (magnitude << 13) | 0x7f800000;
  const auto result = select(magnitude < 0x7c00, finite, special);
  return bitcast<float>(result | ((bits & 0x8000) << 16));
}

/// `value` (f32 lane) rounded to f16, as its bits (u16 lane).
template <Lane X>
constexpr auto float_to_half(X value) {
  const auto bits = bitcast<uint32_t>(value);
  const auto magnitude = bits & 0x7fffffff;
  const auto even = (magnitude >> 13) & 1;
  const auto normal = (magnitude + (even + (0xfff - (112U << 23)))) >> 13;
  const auto denormal =
      bitcast<uint32_t>(bitcast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  const auto rounded = select(magnitude < (113U << 23), denormal, normal);
  const auto finite = select(magnitude < (143U << 23), rounded, 0x7c00);
  const auto result = select(0x7f800000 < magnitude, 0x7e00, finite);
  return convert<uint16_t>(result | ((bits >> 16) & 0x8000));
}

/// `value` (f32 lane) rounded to what f16 holds.
template <Lane X>
constexpr auto rounded_to_half(X value) {
  return half_to_float(float_to_half(value));
}

/// The f32 value of the bf16 with bits `bfloat` (u16 lane); exact.
template <Lane X>
constexpr auto bfloat_to_float(X bfloat) {
  return bitcast<float>(convert<uint32_t>(bfloat) << 16);
}

/// `value` (f32 lane) rounded to bf16, as its bits (u16 lane). Each NaN becomes the positive one,
/// as PyTorch has it.
template <Lane X>
constexpr auto float_to_bfloat(X value) {
  const auto bits = bitcast<uint32_t>(value);
  const auto rounded = (bits + (((bits >> 16) & 1) + 0x7fff)) >> 16;
  const auto is_nan = 0x7f800000 < (bits & 0x7fffffff);
  return convert<uint16_t>(select(is_nan, 0x7fc0, rounded));
}

/// `value` (f32 lane) rounded to what bf16 holds: float_to_bfloat, where the lower half becomes 0.
template <Lane X>
constexpr auto rounded_to_bfloat(X value) {
  const auto bits = bitcast<uint32_t>(value);
  const auto rounded = (bits + (((bits >> 16) & 1) + 0x7fff)) & 0xffff0000U;
  return bitcast<float>(select(value == value, rounded, 0x7fc00000));
}

}  // namespace nitinol
