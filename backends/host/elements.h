// Elements of numeric dtypes as C++ types, for routines that are templates over dtypes.
#pragma once

#include "backends/host/convert.h"
#include "core/dtype.h"

#include <cstdint>
#include <type_traits>

namespace nitinol::host {

/// How elements of a dtype are stored and computed with.
template <DType dtype>
struct Elements;
// clang-format off
template <> struct Elements<u8> { using Stored = uint8_t; using Value = uint8_t; };
template <> struct Elements<i8> { using Stored = int8_t; using Value = int8_t; };
template <> struct Elements<i16> { using Stored = int16_t; using Value = int16_t; };
template <> struct Elements<i32> { using Stored = int32_t; using Value = int32_t; };
template <> struct Elements<i64> { using Stored = int64_t; using Value = int64_t; };
template <> struct Elements<f16> { using Stored = uint16_t; using Value = float; };
template <> struct Elements<bf16> { using Stored = uint16_t; using Value = float; };
template <> struct Elements<f32> { using Stored = float; using Value = float; };
template <> struct Elements<f64> { using Stored = double; using Value = double; };
// clang-format on

template <DType dtype>
inline typename Elements<dtype>::Value value_of(typename Elements<dtype>::Stored stored) {
  if constexpr (dtype == f16)
    return half_to_float(stored);
  else if constexpr (dtype == bf16)
    return bfloat_to_float(stored);
  else
    return stored;
}

template <DType dtype>
inline typename Elements<dtype>::Stored stored(typename Elements<dtype>::Value value) {
  if constexpr (dtype == f16)
    return float_to_half(value);
  else if constexpr (dtype == bf16)
    return float_to_bfloat(value);
  else
    return value;
}

/// Throws Error(unsupported): bool is no number.
[[noreturn]] void throw_no_number();

/// Calls f(std::integral_constant<DType, dtype>{}) for a numeric dtype.
template <class F>
void with_number_type(DType dtype, const F& f) {
  switch (dtype) {
    case u8:
      return f(std::integral_constant<DType, u8>{});
    case i8:
      return f(std::integral_constant<DType, i8>{});
    case i16:
      return f(std::integral_constant<DType, i16>{});
    case i32:
      return f(std::integral_constant<DType, i32>{});
    case i64:
      return f(std::integral_constant<DType, i64>{});
    case f16:
      return f(std::integral_constant<DType, f16>{});
    case bf16:
      return f(std::integral_constant<DType, bf16>{});
    case f32:
      return f(std::integral_constant<DType, f32>{});
    case f64:
      return f(std::integral_constant<DType, f64>{});
    case boolean:
      break;
  }
  throw_no_number();
}

}  // namespace nitinol::host
