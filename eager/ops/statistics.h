// Reductions, and what is divided by them, that are compositions of primitive ops.
//
// The result is recorded as its expansion, which compiled functions fuse. float16 and bfloat16 are
// computed in float32 and rounded at the end; integers and booleans as float32. Axes and keepdims
// are those of sum.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/ops/axes.h"

#include <cstdint>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// Sum divided by the number of elements; NaN for no elements.
[[nodiscard]] Tensor mean(const Tensor& x, const Axes& axes = {}, KeepDims keep = KeepDims::no);
/// Mean square distance from the mean, in two passes; divides by the number of elements - ddof.
/// Throws Error(value) for a negative ddof.
[[nodiscard]] Tensor var(const Tensor& x, const Axes& axes = {}, Integer ddof = 0,
                         KeepDims keep = KeepDims::no);
/// Square root of var; NumPy calls it std, which is a namespace here.
[[nodiscard]] Tensor stddev(const Tensor& x, const Axes& axes = {}, Integer ddof = 0,
                            KeepDims keep = KeepDims::no);
/// ln(sum(e^x)) without overflow; -inf where all elements are.
/// Throws Error(shape) for no elements.
[[nodiscard]] Tensor logsumexp(const Tensor& x, const Axes& axes = {},
                               KeepDims keep = KeepDims::no);
/// e^x / sum(e^x) along an axis, without overflow.
[[nodiscard]] Tensor softmax(const Tensor& x, Integer axis = -1);
/// ln(softmax(x)), accurate where softmax is small.
[[nodiscard]] Tensor log_softmax(const Tensor& x, Integer axis = -1);

[[nodiscard]] std::span<const Op> statistics_ops();

}  // namespace nitinol

#pragma GCC visibility pop
