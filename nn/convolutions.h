// Convolutions and pools along one axis and three, and transposed convolutions, which enlarge.
// Those of images are in layers.h.
//
// Initial values are PyTorch's: uniform within 1 / sqrt(inputs that an output sees), weight and
// bias. Factories throw Error(value) unless the groups divide `in` and `out`.
#pragma once

#include "core/tensor.h"
#include "eager/ops/conv.h"
#include "eager/ops/pool.h"
#include "nn/layers.h"
#include "nn/module.h"

#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// Convolution of sequences [n, in, l] (nitinol::conv1d): [n, out, ol].
struct Conv1d {
  Variable weight;               ///< [out, in / groups, k]
  std::optional<Variable> bias;  ///< [out]
  Conv1dOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  /// What it computes with another weight.
  [[nodiscard]] Tensor with_weight(const Tensor& other, const Tensor& x) const;
};
struct Conv1dLayerOptions {
  Conv1dOptions conv = {};
  bool has_bias = true;
  DType dtype = f32;
};
/// Uniform within 1 / sqrt(inputs that an output sees).
[[nodiscard]] Conv1d conv1d(Integer in, Integer out, Integer kernel,
                            const Conv1dLayerOptions& options = {});

/// Convolution of volumes [n, in, d, h, w] (nitinol::conv3d): [n, out, od, oh, ow].
struct Conv3d {
  Variable weight;               ///< [out, in / groups, kd, kh, kw]
  std::optional<Variable> bias;  ///< [out]
  Conv3dOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  /// What it computes with another weight.
  [[nodiscard]] Tensor with_weight(const Tensor& other, const Tensor& x) const;
};
struct Conv3dLayerOptions {
  Conv3dOptions conv = {};
  bool has_bias = true;
  DType dtype = f32;
};
/// kernel: one for all three axes, or three numbers. Uniform within 1 / sqrt(inputs that an output
/// sees).
[[nodiscard]] Conv3d conv3d(Integer in, Integer out, const Dims& kernel,
                            const Conv3dLayerOptions& options = {});

/// Transposed convolution of sequences [n, in, l] (nitinol::conv_transpose1d): [n, out, ol].
struct ConvTranspose1d {
  static constexpr int64_t output_axis = 1;  ///< of the weight
  Variable weight;                           ///< [in, out / groups, k]
  std::optional<Variable> bias;              ///< [out]
  ConvTranspose1dOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  /// What it computes with another weight.
  [[nodiscard]] Tensor with_weight(const Tensor& other, const Tensor& x) const;
};
struct ConvTranspose1dLayerOptions {
  ConvTranspose1dOptions conv = {};
  bool has_bias = true;
  DType dtype = f32;
};
/// Uniform within 1 / sqrt(out / groups * k), as PyTorch's.
[[nodiscard]] ConvTranspose1d conv_transpose1d(Integer in, Integer out, Integer kernel,
                                               const ConvTranspose1dLayerOptions& options = {});

/// Transposed convolution of images [n, in, h, w] (nitinol::conv_transpose2d): [n, out, oh, ow].
struct ConvTranspose2d {
  static constexpr int64_t output_axis = 1;  ///< of the weight
  Variable weight;                           ///< [in, out / groups, kh, kw]
  std::optional<Variable> bias;              ///< [out]
  ConvTranspose2dOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  /// What it computes with another weight.
  [[nodiscard]] Tensor with_weight(const Tensor& other, const Tensor& x) const;
};
struct ConvTranspose2dLayerOptions {
  ConvTranspose2dOptions conv = {};
  bool has_bias = true;
  DType dtype = f32;
};
/// Uniform within 1 / sqrt(out / groups * kh * kw), as PyTorch's.
[[nodiscard]] ConvTranspose2d conv_transpose2d(Integer in, Integer out, Pair kernel,
                                               const ConvTranspose2dLayerOptions& options = {});

/// Transposed convolution of volumes [n, in, d, h, w] (nitinol::conv_transpose3d):
/// [n, out, od, oh, ow].
struct ConvTranspose3d {
  static constexpr int64_t output_axis = 1;  ///< of the weight
  Variable weight;                           ///< [in, out / groups, kd, kh, kw]
  std::optional<Variable> bias;              ///< [out]
  ConvTranspose3dOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  /// What it computes with another weight.
  [[nodiscard]] Tensor with_weight(const Tensor& other, const Tensor& x) const;
};
struct ConvTranspose3dLayerOptions {
  ConvTranspose3dOptions conv = {};
  bool has_bias = true;
  DType dtype = f32;
};
/// kernel: one for all three axes, or three numbers. Uniform within 1 / sqrt(out / groups * its
/// elements), as PyTorch's.
[[nodiscard]] ConvTranspose3d conv_transpose3d(Integer in, Integer out, const Dims& kernel,
                                               const ConvTranspose3dLayerOptions& options = {});

// ---- pools

/// The largest number of each window of sequences [n, c, l] (nitinol::max_pool1d).
struct MaxPool1d {
  Integer kernel;
  MaxPoolOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// The mean of each window of sequences [n, c, l] (nitinol::avg_pool1d).
struct AvgPool1d {
  Integer kernel;
  AvgPoolOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// The largest number of each window of volumes [n, c, d, h, w] (nitinol::max_pool3d).
struct MaxPool3d {
  Dims kernel;  ///< one for all three axes, or three numbers
  MaxPoolOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// The mean of each window of volumes [n, c, d, h, w] (nitinol::avg_pool3d).
struct AvgPool3d {
  Dims kernel;  ///< one for all three axes, or three numbers
  AvgPoolOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
