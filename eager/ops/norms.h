// Normalisations over rows or groups of features; batch_norm.h has that over a batch.
//
// float16 and bfloat16 are computed in float32 and rounded at the end; integers and booleans as
// float32. The result is recorded as its expansion, which compiled functions fuse.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <cstdint>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

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

/// What group_norm does after normalising, as LayerNorm.
struct GroupNorm {
  Tensor weight{};    ///< multiplied; [features]
  Tensor bias{};      ///< added; [features]
  double eps = 1e-5;  ///< added to the variance
};
/// As layer_norm, over groups of features, axis 1 of x [batch, features, ...], and all axes behind
/// it (Y. Wu, K. He, arXiv:1803.08494, section 3). A group for each feature normalises instances
/// (D. Ulyanov et al., arXiv:1607.08022). Throws Error(shape) if x has fewer than two axes, the
/// groups do not divide the features, or weight or bias another shape.
[[nodiscard]] Tensor group_norm(const Tensor& x, Integer groups, const GroupNorm& options = {});

[[nodiscard]] std::span<const Op> norms_ops();

}  // namespace nitinol

#pragma GCC visibility pop
