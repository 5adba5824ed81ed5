// Comparison by memory, any NaN equal to any NaN: what "same bits" means (design, section 5).
#pragma once

#include "core/dtype.h"
#include "nitinol.h"

namespace nitinol {

/// True if both have the same shape, dtype and elements.
[[nodiscard]] bool same_bits(const Tensor& a, const Tensor& b);

/// For a library's products and convolutions of operands that lie in different ways: the same bits;
/// on a GPU, whose libraries choose algorithms by layouts, at most as far apart as sums in another
/// order are. How far is printed there, as a line of JSON.
[[nodiscard]] bool same_library_bits(const Tensor& a, const Tensor& b);

/// The largest distance between elements of floating-point tensors, in units of the last place of
/// b's largest one: a sum's error is one of its parts' magnitude, whatever they cancel to. Infinite
/// for other shapes or dtypes, and where one is not finite and the other differs.
[[nodiscard]] double ulps_apart(const Tensor& a, const Tensor& b);
/// How far apart a library's results may be.
[[nodiscard]] double most_ulps_apart(DType dtype);

}  // namespace nitinol
