// Convolutions of images [n, c, h, w].
//
// The work is done in channels-last order: the result is a view [n, c, h, w] of memory [n, h, w,
// c]. Elementwise ops keep that order, so between convolutions nothing is transposed.
#pragma once

#include "core/op.h"
#include "core/shape.h"
#include "core/tensor.h"

#include <cstdint>
#include <optional>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

struct Conv2dOptions {
  Pair stride = 1;
  Pair padding = 0;  ///< rows and columns of zeros on both sides
  Pair dilation = 1;
  int64_t groups = 1;                      ///< each sees its share of the channels only
  std::optional<Pair> padding_after = {};  ///< on the right and below, if it differs
  /// Pads so that the result has size / stride rows and columns, rounded up; of an odd number the
  /// greater part goes behind. `padding` is 0 then.
  bool is_same = false;
};

/// Cross-correlation of x [n, c, h, w] with weight [out, c / groups, kh, kw], as PyTorch's conv2d:
/// y[n, o, i, j] = sum of x[n, c, i * stride + a * dilation - padding, ...] * weight[o, c, a, b].
/// Numeric dtypes, promoted; float16 and bfloat16 are computed in float32 and rounded once.
///
/// Returns [n, out, oh, ow], without `is_same` and `padding_after` with oh = (h + 2 * padding -
/// dilation * (kh - 1) - 1) / stride + 1. Throws Error(shape) if the shapes, groups or options do
/// not fit, Error(dtype) for booleans.
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight,
                            const Conv2dOptions& options = {});
/// The same plus bias [out].
[[nodiscard]] Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Conv2dOptions& options = {});

struct Conv1dOptions {
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  std::optional<int64_t> padding_after = {};  ///< at the end, if it differs
  bool is_same = false;                       ///< as Conv2dOptions
};
/// conv2d along one axis: x [n, c, l] with weight [out, c / groups, k] gives [n, out, ol].
[[nodiscard]] Tensor conv1d(const Tensor& x, const Tensor& weight,
                            const Conv1dOptions& options = {});
/// The same plus bias [out].
[[nodiscard]] Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Conv1dOptions& options = {});

/// Each one number for all three axes, or three.
struct Conv3dOptions {
  Dims stride = {1}, padding = {0}, dilation = {1};
  int64_t groups = 1;
  std::optional<Dims> padding_after = {};  ///< behind, if it differs
  bool is_same = false;                    ///< as Conv2dOptions
};
/// conv2d along three axes: x [n, c, d, h, w] with weight [out, c / groups, kd, kh, kw] gives
/// [n, out, od, oh, ow]. A sum of conv2d() for each kd.
[[nodiscard]] Tensor conv3d(const Tensor& x, const Tensor& weight,
                            const Conv3dOptions& options = {});
/// The same plus bias [out].
[[nodiscard]] Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                            const Conv3dOptions& options = {});

struct ConvTranspose1dOptions {
  int64_t stride = 1, padding = 0;
  int64_t output_padding = 0;  ///< so much longer at the end; less than the stride or the dilation
  int64_t dilation = 1, groups = 1;
};
/// The gradient of conv1d for its input, as a layer that enlarges: x [n, c, l] with weight
/// [c, out / groups, k] gives [n, out, ol] with
/// ol = (l - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1.
/// Throws Error(shape) if shapes, groups or options do not fit, Error(dtype) for booleans.
[[nodiscard]] Tensor conv_transpose1d(const Tensor& x, const Tensor& weight,
                                      const ConvTranspose1dOptions& options = {});
/// The same plus bias [out].
[[nodiscard]] Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                      const ConvTranspose1dOptions& options = {});

struct ConvTranspose2dOptions {
  Pair stride = 1, padding = 0;
  Pair output_padding = 0;  ///< so many more rows and columns; less than the stride or dilation
  Pair dilation = 1;
  int64_t groups = 1;
};
/// The gradient of conv2d for its images, as a layer that enlarges: x [n, c, h, w] with weight
/// [c, out / groups, kh, kw] gives [n, out, oh, ow]; sizes and errors as conv_transpose1d().
[[nodiscard]] Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                                      const ConvTranspose2dOptions& options = {});
/// The same plus bias [out].
[[nodiscard]] Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                      const ConvTranspose2dOptions& options = {});

/// Each one number for all three axes, or three.
struct ConvTranspose3dOptions {
  Dims stride = {1}, padding = {0};
  Dims output_padding = {0};  ///< so much larger; less than the stride or the dilation
  Dims dilation = {1};
  int64_t groups = 1;
};
/// The gradient of conv3d for its input, as a layer that enlarges: x [n, c, d, h, w] with weight
/// [c, out / groups, kd, kh, kw] gives [n, out, od, oh, ow]; sizes and errors as
/// conv_transpose1d().
[[nodiscard]] Tensor conv_transpose3d(const Tensor& x, const Tensor& weight,
                                      const ConvTranspose3dOptions& options = {});
/// The same plus bias [out].
[[nodiscard]] Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                                      const ConvTranspose3dOptions& options = {});

[[nodiscard]] std::span<const Op> conv_ops();

}  // namespace nitinol

#pragma GCC visibility pop
