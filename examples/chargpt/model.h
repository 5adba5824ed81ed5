// A small GPT: what the next character is, given those before it (A. Radford et al., 2019).
#pragma once

#include <nitinol/nitinol.h>

#include <cstdint>
#include <vector>

namespace chargpt {

namespace nn = nitinol::nn;
using nitinol::Tensor;

/// Attention and a network of two layers, each normalised before and added to what came in.
struct Block {
  nn::LayerNorm before_attention;
  nn::MultiHeadAttention attention;
  nn::LayerNorm before_mlp;
  nn::Linear up, down;
  /// x: [batch, positions, width].
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor y = x + attention(before_attention(x));
    return y + down(gelu_tanh(up(before_mlp(y))));
  }
};

struct Gpt {
  nn::Embedding characters;
  nn::Embedding positions;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  /// Scores of each character's successor, [batch, positions, characters]. x: [batch, positions],
  /// numbers of characters, at most `context` positions.
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    Tensor y = characters(x) + slice(positions.weight, 0, {0, x.shape()[1]});
    for (const Block& block : blocks) y = block(y);
    return head(norm(y));
  }
};

struct Sizes {
  int64_t characters = 96;  ///< different ones
  int64_t context = 64;     ///< how far back it sees
  int64_t width = 128;
  int64_t heads = 4;
  int64_t blocks = 3;
};

inline Gpt gpt(const Sizes& sizes) {
  const int64_t width = sizes.width;
  Gpt model = {.characters = nn::embedding(sizes.characters, width),
               .positions = nn::embedding(sizes.context, width),
               .blocks = {},
               .norm = nn::layer_norm(width),
               .head = nn::linear(width, sizes.characters)};
  for (int64_t i = 0; i < sizes.blocks; ++i) {
    model.blocks.push_back(
        {.before_attention = nn::layer_norm(width),
         .attention = nn::multi_head_attention(width, sizes.heads, {.is_causal = true}),
         .before_mlp = nn::layer_norm(width),
         .up = nn::linear(width, 4 * width),
         .down = nn::linear(4 * width, width)});
  }
  return model;
}

}  // namespace chargpt
