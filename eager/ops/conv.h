// Convolutions of images [n, c, h, w].
//
// The work is done in channels-last order: the result is a view [n, c, h, w] of memory [n, h, w,
// c]. Elementwise ops keep that order, so between convolutions nothing is transposed.
#pragma once

#include "core/op.h"
#include "core/shape.h"
#include "core/tensor.h"

#include <cstdint>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;  ///< rows and columns of zeros on both sides
  Pair dilation = 1;
  int64_t groups = 1;  ///< each sees its share of the channels only
};

/// Cross-correlation of x [n, c, h, w] with weight [out, c / groups, kh, kw], as PyTorch's conv2d:
/// y[n, o, i, j] = sum of x[n, c, i * stride + a * dilation - padding, ...] * weight[o, c, a, b].
/// Numeric dtypes, promoted; float16 and bfloat16 are computed in float32 and rounded once.
///
/// Returns [n, out, oh, ow] with oh = (h + 2 * padding - dilation * (kh - 1) - 1) / stride + 1.
/// Throws Error(shape) if the shapes, groups or options do not fit, Error(dtype) for booleans.
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight,
                            const Conv2dOptions& options = {});
/// The same plus bias [out].
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Conv2dOptions& options = {});

[[nodiscard]] std::span<const Op> conv_ops();

}  // namespace nitinol

#pragma GCC visibility pop
