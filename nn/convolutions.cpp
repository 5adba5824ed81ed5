#include "nn/convolutions.h"

#include "core/error.h"
#include "nn/checks.h"
#include "nn/init.h"

#include <fmt/format.h>

#include <cmath>

namespace nitinol::nn {
namespace {

/// Of a kernel that is one number for three axes, or three.
Shape kernel_of(const char* where, const Dims& kernel) {
  if (kernel.size() != 1 && kernel.size() != 3) {
    throw Error(ErrorKind::value, {.where = where,
                                   .what = "the setting `kernel`",
                                   .expected = "one number or three",
                                   .got = fmt::format("{}", kernel.size()),
                                   .fix = {}});
  }
  const bool is_one = kernel.size() == 1;
  return {kernel[0], kernel[is_one ? 0 : 1], kernel[is_one ? 0 : 2]};
}

/// Weights [out, in / groups, kernel...], or [in, out / groups, kernel...], and biases.
template <class Layer, class LayerOptions>
Layer drawn(const char* where, Integer in, Integer out, const Shape& kernel,
            const LayerOptions& options, bool is_transposed) {
  check_at_least(where, "in", in, 1);
  check_at_least(where, "out", out, 1);
  const int64_t groups = options.conv.groups;
  if (groups < 1 || in % groups != 0 || out % groups != 0) {
    throw Error(ErrorKind::value, {.where = where,
                                   .what = fmt::format("{} groups for {} channels in and {} out",
                                                       groups, int64_t{in}, int64_t{out}),
                                   .expected = "a number of groups that divides both",
                                   .got = fmt::format("{}", groups),
                                   .fix = {}});
  }
  Shape shape = {is_transposed ? in : out, (is_transposed ? out : in) / groups};
  for (const int64_t size : kernel) {
    check_at_least(where, "kernel", size, 1);
    shape.push_back(size);
  }
  const int64_t seen = element_count(shape) / shape[0];
  const double bound = 1 / std::sqrt(static_cast<double>(seen));
  Layer layer = {.weight = parameter(uniform(shape, bound, options.dtype)),
                 .bias = {},
                 .options = options.conv};
  if (options.has_bias) layer.bias = parameter(uniform({out}, bound, options.dtype));
  return layer;
}

}  // namespace

Conv1d conv1d(Integer in, Integer out, Integer kernel, const Conv1dLayerOptions& options) {
  return drawn<Conv1d>("conv1d", in, out, {kernel}, options, false);
}

Tensor Conv1d::operator()(const Tensor& x) const {
  return with_weight(weight, x);
}

Tensor Conv1d::with_weight(const Tensor& other, const Tensor& x) const {
  return bias ? nitinol::conv1d(x, other, *bias, options) : nitinol::conv1d(x, other, options);
}

Conv3d conv3d(Integer in, Integer out, const Dims& kernel, const Conv3dLayerOptions& options) {
  return drawn<Conv3d>("conv3d", in, out, kernel_of("conv3d", kernel), options, false);
}

Tensor Conv3d::operator()(const Tensor& x) const {
  return with_weight(weight, x);
}

Tensor Conv3d::with_weight(const Tensor& other, const Tensor& x) const {
  return bias ? nitinol::conv3d(x, other, *bias, options) : nitinol::conv3d(x, other, options);
}

ConvTranspose1d conv_transpose1d(Integer in, Integer out, Integer kernel,
                                 const ConvTranspose1dLayerOptions& options) {
  return drawn<ConvTranspose1d>("conv_transpose1d", in, out, {kernel}, options, true);
}

Tensor ConvTranspose1d::operator()(const Tensor& x) const {
  return with_weight(weight, x);
}

Tensor ConvTranspose1d::with_weight(const Tensor& other, const Tensor& x) const {
  return bias ? nitinol::conv_transpose1d(x, other, *bias, options)
              : nitinol::conv_transpose1d(x, other, options);
}

ConvTranspose2d conv_transpose2d(Integer in, Integer out, Pair kernel,
                                 const ConvTranspose2dLayerOptions& options) {
  return drawn<ConvTranspose2d>("conv_transpose2d", in, out, {kernel.rows(), kernel.columns()},
                                options, true);
}

Tensor ConvTranspose2d::operator()(const Tensor& x) const {
  return with_weight(weight, x);
}

Tensor ConvTranspose2d::with_weight(const Tensor& other, const Tensor& x) const {
  return bias ? nitinol::conv_transpose2d(x, other, *bias, options)
              : nitinol::conv_transpose2d(x, other, options);
}

ConvTranspose3d conv_transpose3d(Integer in, Integer out, const Dims& kernel,
                                 const ConvTranspose3dLayerOptions& options) {
  return drawn<ConvTranspose3d>("conv_transpose3d", in, out, kernel_of("conv_transpose3d", kernel),
                                options, true);
}

Tensor ConvTranspose3d::operator()(const Tensor& x) const {
  return with_weight(weight, x);
}

Tensor ConvTranspose3d::with_weight(const Tensor& other, const Tensor& x) const {
  return bias ? nitinol::conv_transpose3d(x, other, *bias, options)
              : nitinol::conv_transpose3d(x, other, options);
}

Tensor MaxPool1d::operator()(const Tensor& x) const {
  return max_pool1d(x, kernel, options);
}

Tensor AvgPool1d::operator()(const Tensor& x) const {
  return avg_pool1d(x, kernel, options);
}

Tensor MaxPool3d::operator()(const Tensor& x) const {
  return max_pool3d(x, kernel, options);
}

Tensor AvgPool3d::operator()(const Tensor& x) const {
  return avg_pool3d(x, kernel, options);
}

}  // namespace nitinol::nn
