// Moving elements between memory of any dtype and stride and contiguous arrays of its compute type.
#pragma once

#include "core/dtype.h"

#include <bit>
#include <cstdint>

namespace nitinol::host {

/// Exact. Infinities and NaN are the largest exponents of both formats.
inline float half_to_float(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffU;
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  const uint32_t special = magnitude >= 0x7c00 ? 0x7f800000 : 0;
  const uint32_t sign = (half & 0x8000U) << 16;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(scaled) | special | sign);
}

/// To nearest, ties to even.
inline uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffff;
  // Adding 0.5 shifts the bits of a denormal result to the end of the mantissa, and rounds.
  const uint32_t denormal =
      std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000;
  const uint32_t normal = (magnitude - (112U << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13;
  const uint32_t special = magnitude > 0x7f800000 ? 0x7e00 : 0x7c00;
  const uint32_t finite = magnitude < (113U << 23) ? denormal : normal;
  return static_cast<uint16_t>((magnitude >= (143U << 23) ? special : finite) |
                               (bits >> 16 & 0x8000));
}

/// Exact.
inline float bfloat_to_float(uint16_t bfloat) {
  return std::bit_cast<float>(static_cast<uint32_t>(bfloat) << 16);
}

/// To nearest, ties to even, NaN to 0x7fc0; in integers, because some processors' own instruction
/// flushes denormals.
inline uint16_t float_to_bfloat(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  const bool is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return static_cast<uint16_t>(is_nan ? 0x7fc0 : rounded);
}

/// True if memory of this dtype holds the compute type itself.
inline bool is_direct(DType dtype) {
  return dtype != f16 && dtype != bf16;
}

/// to[i] = the element at from + i * step (bytes), in the dtype's compute type (bool: bytes 0 or
/// 1).
using Gather = void (*)(const char* from, int64_t step, void* to, int64_t n);
/// The element at to + i * step (bytes) = from[i], rounded to the dtype.
using Scatter = void (*)(const void* from, char* to, int64_t step, int64_t n);

/// For current_isa().
[[nodiscard]] Gather gather_of(DType dtype);
[[nodiscard]] Scatter scatter_of(DType dtype);

}  // namespace nitinol::host
