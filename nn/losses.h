// Losses: the mean over all elements (of the batch, for cross_entropy), one element of the inputs'
// dtype. Throw Error(shape) for shapes that differ.
#pragma once

#include "core/tensor.h"

#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol::nn {

struct CrossEntropyOptions {
  double label_smoothing = 0;   ///< the share of each target spread evenly over all classes
  int64_t ignore_index = -100;  ///< a target that is left out: padding
};
/// The mean of -log softmax(logits)[target] over the targets other than ignore_index; NaN if there
/// are none, with gradients of 0. logits: [..., classes]; targets: integers [...], or probabilities
/// of that shape. Throws Error(value) for a target that is neither a class nor ignore_index.
[[nodiscard]] Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                                   const CrossEntropyOptions& options = {});
/// The mean of (x - y)^2.
[[nodiscard]] Tensor mse_loss(const Tensor& x, const Tensor& y);
/// The mean of |x - y|.
[[nodiscard]] Tensor l1_loss(const Tensor& x, const Tensor& y);
/// The mean of (x - y)^2 / 2 where |x - y| <= delta, else delta (|x - y| - delta / 2) (P. Huber).
[[nodiscard]] Tensor huber_loss(const Tensor& x, const Tensor& y, double delta = 1);
/// The mean of -(t log p + (1 - t) log(1 - p)) with p = sigmoid(logits), without overflow.
[[nodiscard]] Tensor bce_with_logits(const Tensor& logits, const Tensor& targets);

}  // namespace nitinol::nn

#pragma GCC visibility pop
