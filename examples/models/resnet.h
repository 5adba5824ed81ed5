// Residual networks for images (K. He et al., arXiv:1512.03385): ResNet-18, 50 and their like.
#pragma once

#include <nitinol/nitinol.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace models {

namespace nn = nitinol::nn;
using nitinol::Tensor;

/// A convolution that keeps the size, but for its stride, and a BatchNorm.
struct ConvNorm {
  nn::Conv2d conv;
  nn::BatchNorm norm;
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return norm(conv(x)); }
};

inline ConvNorm conv_norm(int64_t before, int64_t after, int64_t kernel, int64_t stride = 1) {
  const nn::Conv2dLayerOptions options = {.conv = {.stride = stride, .padding = kernel / 2},
                                          .has_bias = false};
  return {.conv = nn::conv2d(before, after, kernel, options), .norm = nn::batch_norm(after)};
}

/// Two convolutions, or three of which that in the middle has fewer channels, beside a shortcut.
struct ResidualBlock {
  std::vector<ConvNorm> steps;
  std::optional<ConvNorm> shortcut;
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    Tensor y = x;
    for (const ConvNorm& step : std::span(steps).first(steps.size() - 1)) y = relu(step(y));
    const Tensor kept = shortcut ? (*shortcut)(x) : x;
    return relu(steps.back()(y) + kept);
  }
};

/// Scores of classes, [batch, classes], of images [batch, 3, height, width].
struct ResNet {
  ConvNorm stem;
  std::vector<std::vector<ResidualBlock>> stages;
  nn::Linear head;
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    Tensor y = max_pool2d(relu(stem(x)), 3, {.stride = 2, .padding = 1});
    for (const auto& stage : stages)
      for (const ResidualBlock& block : stage) y = block(y);
    return head(mean(y, {2, 3}));
  }
};

struct ResNetSizes {
  std::vector<int64_t> blocks;
  bool is_bottleneck = false;
  int64_t classes = 1000;
  int64_t width = 64;
};

inline ResidualBlock residual_block(int64_t before, int64_t width, int64_t stride,
                                    bool is_bottleneck) {
  const int64_t after = is_bottleneck ? 4 * width : width;
  ResidualBlock block;
  if (is_bottleneck) {
    block.steps.push_back(conv_norm(before, width, 1));
    block.steps.push_back(conv_norm(width, width, 3, stride));
    block.steps.push_back(conv_norm(width, after, 1));
  } else {
    block.steps.push_back(conv_norm(before, width, 3, stride));
    block.steps.push_back(conv_norm(width, width, 3));
  }
  if (before != after || stride != 1) block.shortcut = conv_norm(before, after, 1, stride);
  return block;
}

inline ResNet resnet(const ResNetSizes& sizes) {
  ResNet model = {.stem = conv_norm(3, sizes.width, 7, 2), .stages = {}, .head = {}};
  int64_t channels = sizes.width;
  int64_t width = sizes.width;
  for (std::size_t i = 0; i < sizes.blocks.size(); ++i) {
    std::vector<ResidualBlock>& stage = model.stages.emplace_back();
    for (int64_t k = 0; k < sizes.blocks[i]; ++k) {
      const int64_t stride = i > 0 && k == 0 ? 2 : 1;
      stage.push_back(residual_block(channels, width, stride, sizes.is_bottleneck));
      channels = sizes.is_bottleneck ? 4 * width : width;
    }
    width *= 2;
  }
  model.head = nn::linear(channels, sizes.classes);
  return model;
}

inline ResNet resnet18() {
  return resnet({.blocks = {2, 2, 2, 2}});
}
inline ResNet resnet50() {
  return resnet({.blocks = {3, 4, 6, 3}, .is_bottleneck = true});
}

/// What torchvision's weights are called here: nn::load_pytorch(path, model, torchvision()).
inline nn::PytorchOptions torchvision() {
  return {.rename = {{"layer1", "stages.0"},
                     {"layer2", "stages.1"},
                     {"layer3", "stages.2"},
                     {"layer4", "stages.3"},
                     {"*.conv1", "*.steps.0.conv"},
                     {"*.conv2", "*.steps.1.conv"},
                     {"*.conv3", "*.steps.2.conv"},
                     {"*.bn1", "*.steps.0.norm"},
                     {"*.bn2", "*.steps.1.norm"},
                     {"*.bn3", "*.steps.2.norm"},
                     {"downsample.0", "shortcut.conv"},
                     {"downsample.1", "shortcut.norm"},
                     {"conv1", "stem.conv"},
                     {"bn1", "stem.norm"},
                     {"fc", "head"}}};
}

}  // namespace models
