// Elements of numeric dtypes as C++ types, for routines that are templates over dtypes.
#pragma once

#include "backends/host/convert.h"
#include "core/dtype.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace nitinol::host {

/// How elements of a dtype are stored and computed with.
template <DType dtype>
struct Elements {
  using Stored = NativeOf<stored_type(dtype)>;
  using Value = NativeOf<compute_type(dtype)>;
};

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
  const auto call = [&]<std::size_t i>(std::integral_constant<std::size_t, i>) {
    constexpr auto each = static_cast<DType>(i);
    if constexpr (numeric.contains(each)) {
      if (each == dtype) f(std::integral_constant<DType, each>{});
    }
  };
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (call(std::integral_constant<std::size_t, i>{}), ...);
  }
  (std::make_index_sequence<dtype_infos.size()>{});
  if (!numeric.contains(dtype)) throw_no_number();
}

}  // namespace nitinol::host
