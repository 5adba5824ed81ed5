// The networks that learn the digits.
#pragma once

#include "examples/digits/data.h"
#include <nitinol/nitinol.h>

namespace digits {

namespace nn = nitinol::nn;
using nitinol::Tensor;

/// 64 pixels -> 128 -> 10 classes.
struct Mlp {
  nn::Linear hidden = nn::linear(pixels, 128);
  nn::Linear out = nn::linear(128, classes);
  /// x: [batch, pixels].
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return out(relu(hidden(x))); }
};

/// Two convolutions of 3 x 3, pooling from 8 x 8 to 4 x 4, then 10 classes.
struct Cnn {
  nn::Conv2d first = nn::conv2d(1, 16, 3, {.conv = {.padding = 1}});
  nn::Conv2d second = nn::conv2d(16, 32, 3, {.conv = {.padding = 1}});
  nn::Linear out = nn::linear(32 * 4 * 4, classes);
  /// x: [batch, pixels].
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor images = reshape(x, {x.shape()[0], 1, 8, 8});
    const Tensor features = relu(second(relu(first(images))));
    return out(flatten(max_pool2d(features, 2), 1));
  }
};

}  // namespace digits
