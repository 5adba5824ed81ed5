// Elements replaced, or joined with others, where indices say.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/argument.h"

#include <cstdint>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// What becomes of an element at which a value arrives. Values arrive in row-major order of their
/// indices, whatever the number of threads.
enum class Arrival : uint8_t {
  set,       ///< the last value
  add,       ///< their sum
  multiply,  ///< their product
  maximum,   ///< the largest; NaN if there is one
  minimum,   ///< the smallest; NaN if there is one
};

/// x, to whose rows (elements, if it has one axis) each values[i..., ...] has arrived at row
/// indices[i...]. Negative indices count from the end; values broadcast. 16-bit numbers are rounded
/// at each product.
/// Throws Error(shape) for values that do not fit, Error(value) for an index out of range,
/// Error(dtype) for booleans, unless they are set.
[[nodiscard]] Tensor scatter(const Tensor& x, const Tensor& indices, const Argument& values,
                             Arrival arrival = Arrival::set);

/// x, to which each value has arrived at its index along `axis`: in two dimensions and along axis
/// 1, at x[i, indices[i, j]]. Along the other axes indices have the size of x, or 1, which is
/// repeated; values broadcast to the indices. The opposite of gather, and NumPy's put_along_axis.
/// Throws Error(shape) for sizes that differ, Error(value) for an index out of range.
[[nodiscard]] Tensor scatter_along(const Tensor& x, Integer axis, const Tensor& indices,
                                   const Argument& values, Arrival arrival = Arrival::set);

[[nodiscard]] std::span<const Op> scatter_ops();

}  // namespace nitinol

#pragma GCC visibility pop
