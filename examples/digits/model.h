// The networks that learn the digits.
#pragma once

#include "examples/digits/data.h"
#include "nitinol.h"

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

}  // namespace digits
