// U-Net (O. Ronneberger et al., arXiv:1505.04597): a class for each pixel.
#pragma once

#include <nitinol/nitinol.h>

#include <cstdint>
#include <vector>

namespace models {

namespace nn = nitinol::nn;
using nitinol::Tensor;

/// Two convolutions, each normalised and followed by relu.
struct Convs {
  nn::Conv2d first;
  nn::BatchNorm first_norm;
  nn::Conv2d second;
  nn::BatchNorm second_norm;
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor y = relu(first_norm(first(x)));
    return relu(second_norm(second(y)));
  }
};

inline Convs convs(int64_t before, int64_t after) {
  const nn::Conv2dLayerOptions options = {.conv = {.padding = 1}, .has_bias = false};
  return {.first = nn::conv2d(before, after, 3, options),
          .first_norm = nn::batch_norm(after),
          .second = nn::conv2d(after, after, 3, options),
          .second_norm = nn::batch_norm(after)};
}

/// Twice the size, beside what the way down had at that size.
struct Up {
  nn::ConvTranspose2d enlarge;
  Convs convs;
  [[nodiscard]] Tensor operator()(const Tensor& x, const Tensor& kept) const {
    return convs(nitinol::concat({kept, enlarge(x)}, 1));
  }
};

/// Scores of classes, [batch, classes, height, width], of images whose sides 2^depth divides.
struct UNet {
  Convs first;
  std::vector<Convs> down;
  std::vector<Up> up;
  nn::Conv2d head;
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    std::vector<Tensor> kept = {first(x)};
    for (const Convs& one : down) kept.push_back(one(max_pool2d(kept.back(), 2)));
    Tensor y = kept.back();
    for (const Up& one : up) {
      kept.pop_back();
      y = one(y, kept.back());
    }
    return head(y);
  }
};

struct UNetSizes {
  int64_t channels = 3;
  int64_t classes = 2;
  int64_t width = 64;
  int64_t depth = 4;
};

inline UNet unet(const UNetSizes& sizes = {}) {
  const auto width = [&](int64_t i) { return sizes.width << i; };
  UNet model = {.first = convs(sizes.channels, sizes.width), .down = {}, .up = {}, .head = {}};
  for (int64_t i = 0; i < sizes.depth; ++i) model.down.push_back(convs(width(i), width(i + 1)));
  for (int64_t i = sizes.depth - 1; i >= 0; --i) {
    model.up.push_back(
        {.enlarge = nn::conv_transpose2d(width(i + 1), width(i), 2, {.conv = {.stride = 2}}),
         .convs = convs(width(i + 1), width(i))});
  }
  model.head = nn::conv2d(sizes.width, sizes.classes, 1);
  return model;
}

}  // namespace models
