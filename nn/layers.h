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
  static constexpr int64_t output_axis = 1;  ///< of the weight
  Variable weight;                           ///< [in, out]
  std::optional<Variable> bias;              ///< [out]
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
  /// What it computes with another weight.
  [[nodiscard]] Tensor with_weight(const Tensor& other, const Tensor& x) const;
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
  /// What it computes with another weight.
  [[nodiscard]] Tensor with_weight(const Tensor& other, const Tensor& x) const;
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
  /// The index that stands for nothing: its row is not learned.
  std::optional<int64_t> padding = {};
  /// Rows of a larger 2-norm are scaled to it, in the table, when they are looked up.
  std::optional<double> max_norm = {};
  [[nodiscard]] Tensor operator()(const Tensor& indices) const;
};
struct EmbeddingOptions {
  std::optional<int64_t> padding = {};
  std::optional<double> max_norm = {};
  DType dtype = f32;
};
/// Initial values are normal with standard deviation 1, and 0 at `padding`. Throws Error(value) for
/// a `padding` that is no row, or a `max_norm` that is not positive.
[[nodiscard]] Embedding embedding(Integer count, Integer width,
                                  const EmbeddingOptions& options = {});

/// What becomes of the rows of a bag.
enum class Pooling : uint8_t { sum, mean, max };
/// Rows of a table, joined: indices [..., bag] give [..., width]; of bags of several sizes one
/// after the other, indices [n] and where each bag begins give [bags, width].
struct EmbeddingBag {
  Variable weight;  ///< [count, width]
  Pooling pooling = Pooling::mean;
  /// The index that stands for nothing: it is in no sum, nor counted. A bag without others gives 0.
  std::optional<int64_t> padding = {};
  /// `weights`, of the shape of the indices: rows are multiplied by them, for sums alone.
  /// `offsets`, integers [bags] that do not descend, the first 0: where each bag begins; it ends
  /// where the next one begins, and without rows it is 0. Throws Error(value) for others.
  [[nodiscard]] Tensor operator()(const Tensor& indices, const std::optional<Tensor>& weights = {},
                                  const std::optional<Tensor>& offsets = {}) const;
};
struct EmbeddingBagOptions {
  Pooling pooling = Pooling::mean;
  std::optional<int64_t> padding = {};
  DType dtype = f32;
};
/// Initial values as Embedding's.
[[nodiscard]] EmbeddingBag embedding_bag(Integer count, Integer width,
                                         const EmbeddingBagOptions& options = {});

// ---- normalisation

struct NormOptions {
  double eps = 1e-5;      ///< added to the variance
  bool is_affine = true;  ///< has a weight
  bool has_bias = true;   ///< and a bias, if it has a weight
  DType dtype = f32;
};
/// (x - mean) / sqrt(var + eps) * weight + bias over the last axis.
struct LayerNorm {
  std::optional<Variable> weight, bias;  ///< [features]
  double eps = 1e-5;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
[[nodiscard]] LayerNorm layer_norm(Integer features, const NormOptions& options = {});

/// (x - mean) / sqrt(var + eps) over groups of features, axis 1, and all axes behind it (Y. Wu, K.
/// He, arXiv:1803.08494), then times weight + bias of each feature.
struct GroupNorm {
  int64_t groups = 1;
  std::optional<Variable> weight = {}, bias = {};  ///< [features]
  double eps = 1e-5;
  /// x: [batch, features, ...].
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// Throws Error(value) unless the groups divide the features.
[[nodiscard]] GroupNorm group_norm(Integer groups, Integer features,
                                   const NormOptions& options = {});

/// GroupNorm with a group for each feature (D. Ulyanov et al., arXiv:1607.08022).
struct InstanceNorm {
  std::optional<Variable> weight = {}, bias = {};  ///< [features]
  double eps = 1e-5;
  /// x: [batch, features, ...].
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
struct InstanceNormOptions {
  double eps = 1e-5;
  bool is_affine = false;  ///< has a weight and a bias
  DType dtype = f32;
};
[[nodiscard]] InstanceNorm instance_norm(Integer features, const InstanceNormOptions& options = {});

/// x / sqrt(mean(x^2) + eps) * weight over the last axis (B. Zhang et al., arXiv:1910.07467).
struct RmsNorm {
  Variable weight;  ///< [features]
  double eps = 1e-6;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
[[nodiscard]] RmsNorm rms_norm(Integer features, double eps = 1e-6, DType dtype = f32);

/// Normalises each feature (axis 1) over the batch and all other axes (S. Ioffe, C. Szegedy,
/// arXiv:1502.03167). While training the statistics are those of the batch, and the running ones
/// move towards them by `momentum` (the variance as the unbiased one), and are used in eval mode.
struct BatchNorm {
  std::optional<Variable> weight, bias;  ///< [features]
  Variable running_mean, running_var;    ///< [features]
  double eps = 1e-5, momentum = 0.1;
  Training training = {true, "BatchNorm.training"};
  bool is_synchronized = false;  ///< statistics of all ranks' batches as one (dist/group.h)
  /// x: [batch, features, ...].
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
struct BatchNormOptions {
  double eps = 1e-5, momentum = 0.1;
  bool is_affine = true;  ///< has a weight and a bias
  DType dtype = f32;
  bool is_synchronized = false;  ///< statistics of all ranks together
};
/// Throws Error(value) unless eps is not negative and momentum from 0 to 1.
[[nodiscard]] BatchNorm batch_norm(Integer features, const BatchNormOptions& options = {});

/// Zeroes elements with probability `rate` while training, and scales the rest by 1 / (1 - rate).
struct Dropout {
  double rate = 0.5;
  Training training = {true, "Dropout.training"};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
[[nodiscard]] Dropout dropout(double rate = 0.5);

/// Dropout of whole features: of [batch, features, ...] a feature of a sample is kept or zeroed (J.
/// Tompson et al., arXiv:1411.4280).
struct FeatureDropout {
  double rate = 0.5;
  Training training = {true, "FeatureDropout.training"};
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
[[nodiscard]] FeatureDropout feature_dropout(double rate = 0.5);

/// What layers of layers may apply to what is between them: a setting of theirs.
enum class Nonlinearity : uint8_t { relu, gelu, tanh };

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

/// The input: what takes the place of a layer that is left out.
struct Identity {
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};
/// Axes first_axis to last_axis as one: by default all but the batch's.
struct Flatten {
  int64_t first_axis = 1, last_axis = -1;
  [[nodiscard]] Tensor operator()(const Tensor& x) const;
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
