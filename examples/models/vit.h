// A transformer that sees images as rows of patches (A. Dosovitskiy et al., arXiv:2010.11929).
#pragma once

#include <nitinol/nitinol.h>

#include <cstdint>
#include <vector>

namespace models {

namespace nn = nitinol::nn;
using nitinol::Tensor;
using nitinol::Variable;

/// Scores of classes, [batch, classes], of images [batch, 3, size, size].
struct VisionTransformer {
  nn::Conv2d patches;
  Variable class_token;  ///< [1, 1, width]
  Variable positions;    ///< [1, 1 + patches, width]
  std::vector<nn::TransformerEncoderLayer> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    Tensor y = transpose(flatten(patches(x), 2), 1, 2);  // [batch, patches, width]
    const Tensor token = expand(class_token, {y.shape()[0], 1, y.shape()[2]});
    y = nitinol::concat({token, y}, 1) + positions;
    for (const auto& block : blocks) y = block(y);
    return head(norm(y).at({nitinol::all_of_axis, 0}));
  }
};

struct VisionTransformerSizes {
  int64_t size = 224;
  int64_t patch = 16;
  int64_t width = 192;
  int64_t depth = 12;
  int64_t heads = 3;
  int64_t classes = 1000;
};

inline VisionTransformer vision_transformer(const VisionTransformerSizes& sizes) {
  const int64_t width = sizes.width;
  const int64_t across = sizes.size / sizes.patch;
  const auto drawn = [&](int64_t count) {
    return parameter(nn::truncated_normal({1, count, width}, 0.02));
  };
  VisionTransformer model = {
      .patches = nn::conv2d(3, width, sizes.patch, {.conv = {.stride = sizes.patch}}),
      .class_token = drawn(1),
      .positions = drawn(across * across + 1),
      .blocks = {},
      .norm = nn::layer_norm(width, {.eps = 1e-6}),
      .head = {}};
  for (int64_t i = 0; i < sizes.depth; ++i) {
    model.blocks.push_back(nn::transformer_encoder_layer(
        width, sizes.heads, 4 * width,
        {.dropout = 0, .activation = nn::Nonlinearity::gelu, .is_norm_first = true, .eps = 1e-6}));
  }
  model.head = nn::linear(width, sizes.classes);
  return model;
}

inline VisionTransformer vit_tiny() {
  return vision_transformer({});
}

/// What timm's weights are called here: nn::load_pytorch(path, model, timm()).
inline nn::PytorchOptions timm() {
  return {.rename = {{"cls_token", "class_token"},
                     {"pos_embed", "positions"},
                     {"patch_embed.proj", "patches"},
                     {"attn", "attention"},
                     {"blocks.*.norm1", "blocks.*.attention_norm"},
                     {"blocks.*.norm2", "blocks.*.out_norm"},
                     {"mlp.fc1", "hidden"},
                     {"mlp.fc2", "out"}}};
}

}  // namespace models
