// Reductions over any axes, in the canonical order (design, section 5).
//
// The result depends neither on threads nor on the instruction set. Without axes all are reduced.
// The result has the other axes, or all with size 1 at the reduced ones (keepdims). Throws
// Error(shape) for an axis that does not exist or is repeated.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/ops/axes.h"

#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// Sum. Unsigned integers are summed as uint64, others and booleans as int64, which wrap; float16
/// and bfloat16 accumulate in float32.
[[nodiscard]] Tensor sum(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// Product; dtypes as sum.
[[nodiscard]] Tensor prod(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// Largest element; NaN if there is one. Throws Error(shape) for no elements.
[[nodiscard]] Tensor max(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// Smallest element; NaN if there is one. Throws Error(shape) for no elements.
[[nodiscard]] Tensor min(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// Boolean: whether any element is nonzero.
[[nodiscard]] Tensor any(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// Boolean: whether all elements are nonzero.
[[nodiscard]] Tensor all(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// int64 position of the first largest element (of the first NaN if there is one) along an axis, or
/// in row-major order of several, or of all. Throws Error(shape) for no elements.
[[nodiscard]] Tensor argmax(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// int64 position of the first smallest element, as argmax.
[[nodiscard]] Tensor argmin(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);

/// Running sums along one axis: result[j] = x[0] + ... + x[j], added in runs of 16. Shape of x;
/// dtypes as sum. float16 and bfloat16 sums are kept in float32 and rounded for each result.
/// Throws Error(shape) for an axis that does not exist, so for any of a 0-d tensor.
[[nodiscard]] Tensor cumsum(const Tensor& x, Integer axis);
/// Running products along one axis, as cumsum. Where a line has a zero, gradients are exact, too.
[[nodiscard]] Tensor cumprod(const Tensor& x, Integer axis);
/// The largest element so far along one axis; NaN from the first one on. Shape and dtype of x.
/// The last of equal ones has the gradient.
[[nodiscard]] Tensor cummax(const Tensor& x, Integer axis);
/// The smallest element so far along one axis, as cummax.
[[nodiscard]] Tensor cummin(const Tensor& x, Integer axis);
/// ln of the running sums of e^x along one axis, without overflow: as cumsum, but joined by
/// logaddexp(). Where all elements so far are -infinity it is, too. Shape of x; its dtype if
/// floating, else float32.
[[nodiscard]] Tensor logcumsumexp(const Tensor& x, Integer axis);

[[nodiscard]] std::span<const Op> reduce_ops();

}  // namespace nitinol

#pragma GCC visibility pop
