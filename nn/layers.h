// Layers: what they hold is public, what they do is their call operator.
//
// Factories draw initial values from the default generator: manual_seed() makes them repeatable.
// `x` stands for a batch; the last axis holds features unless something else is said.
#pragma once

#include "core/generator.h"
#include "core/tensor.h"
#include "eager/ops/conv.h"
#include "eager/ops/pool.h"
#include "nn/module.h"

#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// x @ weight + bias, over the last axis.
struct Linear {
  Variable weight;               ///< [in, out]
  std::optional<Variable> bias;  ///< [out]
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
struct LinearOptions {
  bool has_bias = true;
  DType dtype = f32;
};
/// Initial values as PyTorch: uniform within 1 / sqrt(in), both weight and bias.
[[nodiscard]] Linear linear(Integer in, Integer out, const LinearOptions& options = {});

/// Convolution of images [n, in, h, w] (nitinol::conv2d): [n, out, oh, ow].
struct Conv2d {
  Variable weight;               ///< [out, in / groups, kh, kw]
  std::optional<Variable> bias;  ///< [out]
  Conv2dOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
struct Conv2dLayerOptions {
  Conv2dOptions conv = {};
  bool has_bias = true;
  DType dtype = f32;
};
/// Initial values as PyTorch: uniform within 1 / sqrt(in / groups * kh * kw), both weight and bias.
/// Throws Error(value) unless the groups divide `in` and `out`.
[[nodiscard]] Conv2d conv2d(Integer in, Integer out, Pair kernel,
                            const Conv2dLayerOptions& options = {});

/// The largest number of each window of images [n, c, h, w] (nitinol::max_pool2d).
struct MaxPool2d {
  Pair kernel;
  MaxPool2dOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// The mean of each window of images [n, c, h, w] (nitinol::avg_pool2d).
struct AvgPool2d {
  Pair kernel;
  AvgPool2dOptions options = {};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};

/// Rows of a table: indices of shape [...] give [..., width].
struct Embedding {
  Variable weight;  ///< [count, width]
  [[nodiscard]] Tensor operator()(const Tensor& indices) const;
};
/// Initial values are normal with standard deviation 1.
[[nodiscard]] Embedding embedding(Integer count, Integer width, DType dtype = f32);

/// (x - mean) / sqrt(var + eps) * weight + bias over the last axis.
struct LayerNorm {
  Variable weight, bias;  ///< [features]
  double eps = 1e-5;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
[[nodiscard]] LayerNorm layer_norm(Integer features, double eps = 1e-5, DType dtype = f32);

/// x / sqrt(mean(x^2) + eps) * weight over the last axis (B. Zhang, R. Sennrich,
/// arXiv:1910.07467).
struct RmsNorm {
  Variable weight;  ///< [features]
  double eps = 1e-6;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
[[nodiscard]] RmsNorm rms_norm(Integer features, double eps = 1e-6, DType dtype = f32);

/// Normalises each feature (axis 1) over the batch and all other axes (S. Ioffe, C. Szegedy,
/// arXiv:1502.03167). While training the statistics are those of the batch, and the running ones
/// move towards them by `momentum` (the variance as the unbiased one, as in PyTorch); in eval mode
/// the running ones are used.
struct BatchNorm {
  Variable weight, bias;               ///< [features]
  Variable running_mean, running_var;  ///< [features]
  double eps = 1e-5, momentum = 0.1;
  Training training = {true, "BatchNorm.training"};
  /// x: [batch, features, ...].
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
[[nodiscard]] BatchNorm batch_norm(Integer features, DType dtype = f32);

/// Zeroes elements with probability `rate` while training, and scales the rest by 1 / (1 - rate).
struct Dropout {
  double rate = 0.5;
  Training training = {true, "Dropout.training"};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
[[nodiscard]] Dropout dropout(double rate = 0.5);

// ---- activations with a setting; those without are functions: relu, gelu, mish, hardswish

/// nitinol::leaky_relu.
struct LeakyRelu {
  double slope = 0.01;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// leaky_relu with slopes that are learned (nitinol::prelu).
struct PRelu {
  Variable slope;  ///< [1], or one for each feature along axis 1
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// `count` slopes: 1, or as many as there are features.
[[nodiscard]] PRelu prelu(Integer count = 1, double initial = 0.25, DType dtype = f32);
/// nitinol::elu.
struct Elu {
  double alpha = 1;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// nitinol::celu.
struct Celu {
  double alpha = 1;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// nitinol::glu: one half along an axis, gated by the other.
struct Glu {
  int64_t axis = -1;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// nitinol::softmax along an axis.
struct Softmax {
  int64_t axis = -1;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};

// ---- shapes

/// The input: what takes the place of a layer that is left out.
struct Identity {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// Axes first_axis to last_axis as one: by default all but the batch's.
struct Flatten {
  int64_t first_axis = 1, last_axis = -1;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};

// ---- sequences

/// A recurrent layer with long short-term memory (S. Hochreiter, J. Schmidhuber, 1997), gates in
/// PyTorch's order: input, forget, cell, output.
struct Lstm {
  Variable input_weight;   ///< [in, 4 hidden]
  Variable hidden_weight;  ///< [hidden, 4 hidden]
  Variable bias;           ///< [4 hidden]
  struct State {
    Tensor hidden, cell;  ///< [batch, hidden]
  };
  struct Output {
    Tensor sequence;  ///< [steps, batch, hidden]
    State last;
  };
  /// x: [steps, batch, in]. Without a state it begins with zeros.
  [[nodiscard]] Output operator()(const Tensor& x, std::optional<State> state = {}) const;
};
[[nodiscard]] Lstm lstm(Integer in, Integer hidden, DType dtype = f32);

/// Attention of every position to every other one with several heads (A. Vaswani et al.,
/// arXiv:1706.03762).
struct MultiHeadAttention {
  Linear qkv;   ///< width -> 3 width: queries, keys, values
  Linear proj;  ///< width -> width
  int64_t heads = 1;
  bool is_causal = false;  ///< position i sees positions 0 ... i
  /// x: [batch, positions, width].
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
struct AttentionOptions {
  bool is_causal = false;
  bool has_bias = true;
  DType dtype = f32;
};
/// Throws Error(value) unless `heads` divides `width`.
[[nodiscard]] MultiHeadAttention multi_head_attention(Integer width, Integer heads,
                                                      const AttentionOptions& options = {});

/// softmax(q k^T / sqrt(width)) v over the last two axes [positions, width].
[[nodiscard]] Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                               bool is_causal = false);

}  // namespace nitinol::nn

#pragma GCC visibility pop
