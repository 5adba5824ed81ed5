// Elements in order: sorting, the largest few, places among sorted ones, and quantiles.
//
// NaN counts as greater than all numbers, so that it comes last in ascending order. What compares
// equal, -0 and 0 too, keeps its order. The result depends neither on threads nor on the
// instruction set.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/argument.h"
#include "eager/ops/axes.h"

#include <cstdint>
#include <optional>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// The smallest or the largest first.
enum class SortOrder : bool { ascending, descending };

/// The elements along an axis in order. Any dtype; shape of x.
/// Throws Error(shape) for an axis that does not exist, so for any of a 0-d tensor.
[[nodiscard]] Tensor sort(const Tensor& x, Integer axis = -1,
                          SortOrder order = SortOrder::ascending);
/// int64 positions along an axis that put its elements in order: gather(x, axis, argsort(x, axis))
/// is sort(x, axis). Throws Error(shape) for an axis that does not exist.
[[nodiscard]] Tensor argsort(const Tensor& x, Integer axis = -1,
                             SortOrder order = SortOrder::ascending);

/// Elements along an axis, and where they are.
struct Ordered {
  Tensor values;   ///< dtype of x
  Tensor indices;  ///< int64 positions along the axis
};
/// The first k elements along an axis in descending (or ascending) order: the k largest (smallest).
/// The line is read once; it is not sorted.
/// Throws Error(value) unless 0 <= k <= the axis's size.
[[nodiscard]] Ordered topk(const Tensor& x, Integer k, Integer axis = -1,
                           SortOrder order = SortOrder::descending);
/// The k-th smallest element along an axis, from 1 on.
/// Throws Error(value) unless 1 <= k <= the axis's size.
[[nodiscard]] Ordered kthvalue(const Tensor& x, Integer k, Integer axis = -1,
                               KeepDims keep = KeepDims::no);

/// Which of the places that keep a line sorted: before what is equal, or after it.
enum class Side : bool { left, right };
/// int64 places at which the elements of x can be put into `sorted`, a line in ascending order, so
/// that it stays sorted: how many elements of it are less (Side::right: not greater). Shape of x.
/// Throws Error(shape) unless `sorted` has one axis.
[[nodiscard]] Tensor searchsorted(const Argument& sorted, const Argument& x,
                                  Side side = Side::left);
/// Between which of the ascending `boundaries` the elements of x are, from 0 on; what is equal to a
/// boundary is before it unless `right` is false: searchsorted with the operands turned round, and
/// numpy.digitize.
[[nodiscard]] Tensor bucketize(const Argument& x, const Argument& boundaries,
                               Side side = Side::left);

/// The q-quantile along an axis (of all elements if none is given), 0 <= q <= 1: between the two
/// nearest elements in proportion (Hyndman and Fan, The American Statistician 50 (1996), type 7).
/// NaN if there is one. Integers and booleans are computed as float32.
/// Throws Error(shape) for no elements, Error(value) for another q.
[[nodiscard]] Tensor quantile(const Tensor& x, double q, std::optional<Integer> axis = {},
                              KeepDims keep = KeepDims::no);
/// The quantiles of a tensor of numbers q, whose axes come first; NaN for those that are not
/// between 0 and 1.
[[nodiscard]] Tensor quantile(const Tensor& x, const Tensor& q, std::optional<Integer> axis = {},
                              KeepDims keep = KeepDims::no);
/// The element in the middle along an axis (of all if none is given), or the mean of the two that
/// are. NaN if there is one. Integers and booleans are computed as float32.
/// Throws Error(shape) for no elements.
[[nodiscard]] Tensor median(const Tensor& x, std::optional<Integer> axis = {},
                            KeepDims keep = KeepDims::no);

[[nodiscard]] std::span<const Op> order_ops();

}  // namespace nitinol

#pragma GCC visibility pop
