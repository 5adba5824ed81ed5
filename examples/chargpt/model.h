// A small GPT: what the next character is, given those before it (A. Radford et al., 2019).
#pragma once

#include <nitinol/nitinol.h>

#include <cstdint>
#include <span>
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

/// What is to be written.
struct Writing {
  int64_t length = 500;  ///< at least so many characters; at most twice as many
  int64_t end = -1;      ///< the character after which it may end
  double temperature = 0.5;
};

/// What the model writes after the prompt, numbers of characters as that is, one by one: each is
/// drawn, read, and seen by the next. Those of low probability become rarer still at temperatures
/// below 1. A function for compile(): it runs in segments.
inline Tensor write(const Gpt& model, const Tensor& prompt, const Writing& writing) {
  const int64_t context = model.positions.weight.spec().shape[0];
  std::vector<int64_t> written;
  Tensor seen = prompt;
  const auto is_at_end = [&] {
    const auto count = static_cast<int64_t>(written.size());
    return count >= 2 * writing.length ||
           (count >= writing.length && written.back() == writing.end);
  };
  while (!is_at_end()) {
    if (seen.size() > context) seen = slice(seen, 0, {.start = -context});
    const Tensor scores = model(unsqueeze(seen, 0)).at({0, -1});
    const Tensor next = nitinol::categorical(softmax(scores / writing.temperature));
    written.push_back(next.item<int64_t>());
    seen = nitinol::concat({seen, reshape(next, {1})}, 0);
  }
  return nitinol::from_span(std::span<const int64_t>(written),
                            {static_cast<int64_t>(written.size())});
}

}  // namespace chargpt
