// Pooling: windows of images [n, c, h, w] become numbers. Results lie in channels-last order, as
// those of convolutions (eager/ops/conv.h).
#pragma once

#include "core/op.h"
#include "core/shape.h"
#include "core/tensor.h"

#include <cstdint>
#include <optional>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

struct MaxPool2dOptions {
  std::optional<Pair> stride = {};  ///< unless given, the kernel's size
  Pair padding = 0;                 ///< at most half the kernel; smaller than any number
  Pair dilation = 1;                ///< from one element of a window to the next
  bool is_ceil = false;             ///< windows may reach beyond the end, if they begin before it
};

/// The largest number of each window, as PyTorch's max_pool2d; NaN if there is one. The gradient
/// goes to the first of equal numbers in row-major order (to the last NaN). Numeric dtypes.
///
/// Returns [n, c, oh, ow] with oh = (h + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1,
/// rounded down, or up with `is_ceil`. Throws Error(shape) if the shapes or options do not fit.
[[nodiscard]] Tensor max_pool2d(const Tensor& x, Pair kernel, const MaxPool2dOptions& options = {});

struct AvgPool2dOptions {
  std::optional<Pair> stride = {};  ///< unless given, the kernel's size
  Pair padding = 0;                 ///< at most half the kernel; zeros
  bool counts_padding = true;  ///< divide by the kernel's size, also where it reaches into padding
  /// Windows may reach beyond the end, if they begin before it; what is beyond never counts.
  bool is_ceil = false;
};

/// The mean of each window, as PyTorch's avg_pool2d: a convolution of each channel with ones,
/// divided by the number of pixels. Floating dtypes; shapes and errors as max_pool2d.
[[nodiscard]] Tensor avg_pool2d(const Tensor& x, Pair kernel, const AvgPool2dOptions& options = {});

/// Largest numbers, and where they are.
struct MaxPooled {
  Tensor values;
  Tensor indices;  ///< int64: row * w + column of the image
};
/// max_pool2d() and the places of what it finds; the first of equal numbers.
[[nodiscard]] MaxPooled max_pool2d_with_indices(const Tensor& x, Pair kernel,
                                                const MaxPool2dOptions& options = {});
/// Images of `size` with the values at their places, zeros elsewhere: [n, c, rows, columns]. Throws
/// Error(shape) unless values and indices are [n, c, oh, ow], Error(value) for a place outside.
[[nodiscard]] Tensor max_unpool2d(const Tensor& values, const Tensor& indices, Pair size);

/// Of windows along one axis, or one number for all three axes or three.
struct MaxPoolOptions {
  std::optional<Dims> stride = {};  ///< unless given, the kernel's size
  Dims padding = {0};               ///< at most half the kernel; smaller than any number
  Dims dilation = {1};              ///< from one element of a window to the next
  bool is_ceil = false;             ///< as MaxPool2dOptions
};
struct AvgPoolOptions {
  std::optional<Dims> stride = {};  ///< unless given, the kernel's size
  Dims padding = {0};               ///< at most half the kernel; zeros
  bool counts_padding = true;       ///< as AvgPool2dOptions
  bool is_ceil = false;             ///< as AvgPool2dOptions
};
/// max_pool2d along one axis: x [n, c, l].
[[nodiscard]] Tensor max_pool1d(const Tensor& x, Integer kernel,
                                const MaxPoolOptions& options = {});
/// avg_pool2d along one axis: x [n, c, l].
[[nodiscard]] Tensor avg_pool1d(const Tensor& x, Integer kernel,
                                const AvgPoolOptions& options = {});
/// max_pool2d along three axes: x [n, c, d, h, w].
[[nodiscard]] Tensor max_pool3d(const Tensor& x, const Dims& kernel,
                                const MaxPoolOptions& options = {});
/// avg_pool2d along three axes: x [n, c, d, h, w].
[[nodiscard]] Tensor avg_pool3d(const Tensor& x, const Dims& kernel,
                                const AvgPoolOptions& options = {});

[[nodiscard]] std::span<const Op> pool_ops();

}  // namespace nitinol

#pragma GCC visibility pop
