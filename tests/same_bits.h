// Comparison by memory, any NaN equal to any NaN: what "same bits" means (design, section 5).
#pragma once

#include "nitinol.h"

namespace nitinol {

/// True if both have the same shape, dtype and elements.
[[nodiscard]] bool same_bits(const Tensor& a, const Tensor& b);

}  // namespace nitinol
