// Normalisation of each feature over a batch.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// What batch_norm does after normalising.
struct BatchNorm {
  Tensor weight;      ///< multiplied; [features], or undefined: by 1
  Tensor bias;        ///< added; [features], or undefined: nothing
  double eps = 1e-5;  ///< added to the variance
};

/// What it has found.
struct BatchNormed {
  Tensor values;
  Tensor mean, variance;  ///< of each feature, [features], in float32 at least
};

/// (x - mean) / sqrt(variance + eps) * weight + bias for each feature, by the mean and variance of
/// the batch (S. Ioffe, C. Szegedy, arXiv:1502.03167, algorithm 1).
///
/// x: [batch, features, ...]; floating. float16 and bfloat16 are computed in float32.
/// The values have x's shape and dtype; of images, [n, c, h, w], they lie channels last in memory.
/// Throws Error(shape) if x has fewer than two axes or weight or bias another shape.
[[nodiscard]] BatchNormed batch_norm(const Tensor& x, const BatchNorm& options);

/// Normalises each feature by a given mean and variance, [features], through which gradients flow:
/// they may be those of several batches together. Throws likewise.
[[nodiscard]] Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance,
                                const BatchNorm& options);

[[nodiscard]] std::span<const Op> batch_norm_ops();

}  // namespace nitinol

#pragma GCC visibility pop
