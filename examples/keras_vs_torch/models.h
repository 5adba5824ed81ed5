// The networks of the discussion. Dropout's rate is a setting: the comparison with PyTorch, whose
// random numbers are others, sets it to 0.
#pragma once

#include <nitinol/nitinol.h>

namespace keras_vs_torch {

namespace nn = nitinol::nn;
using nitinol::Tensor;

/// 100 -> 128 -> 10.
struct Small {
  static constexpr const char* name = "small";
  nn::Linear hidden = nn::linear(100, 128);
  nn::Linear out = nn::linear(128, 10);
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return out(relu(hidden(x))); }
};

/// 100 -> 256 -> 128 -> 10 with batch norm and dropout.
struct Normalised {
  static constexpr const char* name = "normalised";
  nn::Linear first = nn::linear(100, 256);
  nn::BatchNorm norm_1 = nn::batch_norm(256);
  nn::Dropout drop_1 = nn::dropout(0.5);
  nn::Linear second = nn::linear(256, 128);
  nn::BatchNorm norm_2 = nn::batch_norm(128);
  nn::Dropout drop_2 = nn::dropout(0.5);
  nn::Linear out = nn::linear(128, 10);
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor y = drop_1(relu(norm_1(first(x))));
    return out(drop_2(relu(norm_2(second(y)))));
  }
};

/// Scores from the last of 25 steps of 4 features each.
struct Recurrent {
  static constexpr const char* name = "recurrent";
  nn::Lstm lstm = nn::lstm(4, 64);
  nn::Linear out = nn::linear(64, 10);
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor steps = permute(reshape(x, {x.shape()[0], 25, 4}), {1, 0, 2});
    return out(lstm(steps).last.hidden[0]);
  }
};

}  // namespace keras_vs_torch
