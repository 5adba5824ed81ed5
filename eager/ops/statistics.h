// Reductions and normalisations that are compositions of primitive ops.
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

/// What layer_norm does after normalising; undefined tensors are left out.
struct LayerNorm {
  Tensor weight{};              ///< multiplied; of the normalised axes' shape
  Tensor bias{};                ///< added; of the normalised axes' shape
  int64_t normalized_axes = 1;  ///< how many axes, from the last
  double eps = 1e-5;            ///< added to the variance
};
/// (x - mean) / sqrt(var + eps) over the last axes (Ba, Kiros, Hinton, arXiv:1607.06450, section
/// 3). Throws Error(shape) if x has fewer axes, or weight or bias another shape,
/// Error(value) if eps is negative or not finite.
[[nodiscard]] Tensor layer_norm(const Tensor& x, const LayerNorm& options = {});

/// What rms_norm does after normalising, as LayerNorm.
struct RmsNorm {
  Tensor weight{};              ///< multiplied; of the normalised axes' shape; undefined for none
  int64_t normalized_axes = 1;  ///< how many axes, from the last
  double eps = 1e-6;            ///< added to the mean square
};
/// x / sqrt(mean(x^2) + eps) over the last axes (B. Zhang, R. Sennrich, arXiv:1910.07467, section
/// 4). Throws as layer_norm.
[[nodiscard]] Tensor rms_norm(const Tensor& x, const RmsNorm& options = {});

[[nodiscard]] std::span<const Op> statistics_ops();

}  // namespace nitinol

#pragma GCC visibility pop
