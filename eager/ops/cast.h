// Changing the dtype, and copying.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// The elements of `x` as `dtype`; `x` itself if it has that dtype already.
///
/// Floating to integer saturates and NaN gives 0; integers wrap; a number to bool is x != 0; to a
/// narrower floating dtype rounds to nearest even.
[[nodiscard]] Tensor cast(const Tensor& x, DType dtype);

/// The same elements in fresh, contiguous memory. Values cannot tell; it releases the memory that
/// `x`, a small view, keeps alive.
[[nodiscard]] Tensor copy(const Tensor& x);

/// `x` itself if its elements lie in row-major order, else a copy in which they do.
[[nodiscard]] Tensor row_major(const Tensor& x);

[[nodiscard]] std::span<const Op> cast_ops();

}  // namespace nitinol

#pragma GCC visibility pop
