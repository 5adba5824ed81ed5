// Running one op now: loops over its operands, a prepared kernel, a launch.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

namespace nitinol::eager {

/// Stores the elementwise or create op's result into the memory that `out` views. Inputs broadcast
/// to out's shape and overlap it nowhere.
void compute_into(const Op& op, Inputs inputs, const Tensor& out);

/// Stores the reduction of `x` over `axes` (normalised) into `out`, contiguous; x has elements.
void reduce_into(const Op& op, const Tensor& x, const Dims& axes, const Tensor& out);

/// Calls the backend's routine that a library or index op names. Throws Error(value) if a check
/// inside fails.
void call_into(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& out);

/// Stores `from`, broadcast, into the memory that `out` views.
void copy_into(const Tensor& from, const Tensor& out);

/// The same elements in row-major order; `x` itself if they are.
[[nodiscard]] Tensor contiguous(const Tensor& x);

}  // namespace nitinol::eager
