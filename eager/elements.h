// Single elements between memory and C++ numbers, for creation and reading.
#pragma once

#include "core/dtype.h"
#include "core/scalar_value.h"

#include <cstddef>
#include <cstdint>

namespace nitinol {

/// The stored bits, zero-extended, of `number` as an element of `dtype`: integers wrap, floating
/// numbers round or saturate as cast does.
[[nodiscard]] uint64_t element_of(DType dtype, const Scalar& number);
/// The number that the element at `address` is.
[[nodiscard]] Scalar number_at(DType dtype, const void* address);

}  // namespace nitinol
