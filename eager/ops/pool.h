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
};

/// The largest number of each window, as PyTorch's max_pool2d; NaN if there is one. The gradient
/// goes to the first of equal numbers in row-major order (to the last NaN). Numeric dtypes.
///
/// Returns [n, c, oh, ow] with oh = (h + 2 * padding - kernel) / stride + 1. Throws Error(shape) if
/// the shapes or options do not fit.
[[nodiscard]] Tensor max_pool2d(const Tensor& x, Pair kernel, const MaxPool2dOptions& options = {});

struct AvgPool2dOptions {
  std::optional<Pair> stride = {};  ///< unless given, the kernel's size
  Pair padding = 0;                 ///< at most half the kernel; zeros
  bool counts_padding = true;  ///< divide by the kernel's size, also where it reaches into padding
};

/// The mean of each window, as PyTorch's avg_pool2d: a convolution of each channel with ones,
/// divided by the number of pixels. Floating dtypes; shapes and errors as max_pool2d.
[[nodiscard]] Tensor avg_pool2d(const Tensor& x, Pair kernel, const AvgPool2dOptions& options = {});

[[nodiscard]] std::span<const Op> pool_ops();

}  // namespace nitinol

#pragma GCC visibility pop
