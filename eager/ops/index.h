// Elements chosen by indices.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <cstdint>
#include <span>

namespace nitinol {

/// The sub-tensors of x along `axis` that `indices` name: the axis is replaced by the axes of
/// `indices`, an integer tensor of any shape. Negative indices count from the end.
/// Throws Error(value) for an index out of range.
[[nodiscard]] Tensor take(const Tensor& x, const Tensor& indices, int64_t axis = 0);

/// Zeros of shape [rows, ...] to which each values[i..., ...] has been added at row indices[i...]:
/// the opposite of take, and a histogram where the values are ones. Sums are taken in row-major
/// order of the indices, whatever the number of threads. Negative indices count from the end.
/// Throws Error(shape) unless the first axes of `values` are those of `indices`, Error(value) for
/// an index out of range.
[[nodiscard]] Tensor scatter_add(const Tensor& values, const Tensor& indices, int64_t rows);

/// A last axis of `classes` elements: 1 at the position that the integer says, else 0; all 0 if it
/// is out of range.
[[nodiscard]] Tensor one_hot(const Tensor& indices, int64_t classes, DType dtype = f32);

[[nodiscard]] std::span<const Op* const> index_ops();

}  // namespace nitinol
