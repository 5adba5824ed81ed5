// Matrix products.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// Matrix product of a[..., m, k] and b[..., k, n]: [..., m, n]; leading axes broadcast. A vector
/// on the left is a row, on the right a column, and that axis is absent from the result. Numeric
/// dtypes; the result's is their promotion. Transposed views are multiplied without copies.
///
/// Throws Error(shape) if the inner sizes differ or an operand is 0-d, Error(dtype) for booleans.
[[nodiscard]] Tensor matmul(const Tensor& a, const Tensor& b);

[[nodiscard]] std::span<const Op> matmul_ops();

}  // namespace nitinol

#pragma GCC visibility pop
