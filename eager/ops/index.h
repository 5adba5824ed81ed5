// Elements chosen by indices.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <cstdint>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// The sub-tensors of x along `axis` that `indices` name: the axis is replaced by the axes of
/// `indices`, an integer tensor of any shape. Negative indices count from the end.
/// Throws Error(value) for an index out of range.
[[nodiscard]] Tensor take(const Tensor& x, const Tensor& indices, Integer axis = 0);

/// Zeros of shape [rows, ...] to which each values[i..., ...] has been added at row indices[i...]:
/// the opposite of take, and a histogram where the values are ones. Sums are taken in row-major
/// order of the indices, whatever the number of threads. Negative indices count from the end.
/// Throws Error(shape) unless the first axes of `values` are those of `indices`, Error(value) for
/// an index out of range.
[[nodiscard]] Tensor scatter_add(const Tensor& values, const Tensor& indices, Integer rows);

/// One element of x for each index, which takes the index's place along `axis`: in two dimensions
/// and along axis 1, result[i, j] = x[i, indices[i, j]]. NumPy's take_along_axis.
///
/// x: any dtype. indices: integers, as many axes as x; negative ones count from the end. Along the
/// other axes the two have equal sizes, or one has size 1 and is repeated.
/// Returns the dtype of x and the size of `indices` along `axis`: argmax(x, -1, keepdims) gathers
/// what max(x, -1, keepdims) finds.
/// Throws Error(shape) for sizes that differ, Error(value) for an index out of range.
[[nodiscard]] Tensor gather(const Tensor& x, Integer axis, const Tensor& indices);

/// Zeros of `size` along `axis` to which each value has been added where its index says: in two
/// dimensions and along axis 1, result[i, indices[i, j]] += values[i, j]. The opposite of gather.
/// Sums are taken in the order of the indices, whatever the number of threads.
///
/// values: numbers. indices: integers, as many axes as values; negative ones count from the end.
/// Sizes are equal, or 1 and repeated: values of ones({1, 1}) count the indices of each row.
/// Throws Error(shape) for sizes that differ, Error(value) for an index out of range.
[[nodiscard]] Tensor scatter_add_along(const Tensor& values, Integer axis, const Tensor& indices,
                                       Integer size);

/// A last axis of `classes` elements: 1 at the position that the integer says, else 0; all 0 if it
/// is out of range.
[[nodiscard]] Tensor one_hot(const Tensor& indices, Integer classes, DType dtype = f32);

[[nodiscard]] std::span<const Op> index_ops();

}  // namespace nitinol

#pragma GCC visibility pop
