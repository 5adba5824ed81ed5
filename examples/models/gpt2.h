// GPT-2 (A. Radford et al., 2019): what the next token is, given those before it.
#pragma once

#include <nitinol/nitinol.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace models {

namespace nn = nitinol::nn;
using nitinol::Tensor;

using Caches = std::vector<nn::KeyValueCache>;

/// Attention to what came before and two layers for each position; each is added to its input.
struct Gpt2Block {
  nn::LayerNorm attention_norm;
  nn::MultiHeadAttention attention;
  nn::LayerNorm norm;
  nn::Linear up, down;
  [[nodiscard]] Tensor operator()(const Tensor& x,
                                  const std::optional<nn::KeyValueCache>& cache) const {
    const Tensor y = x + attention(attention_norm(x), {.cache = cache});
    return y + down(gelu_tanh(up(norm(y))));
  }
};

struct Gpt2 {
  nn::Embedding tokens, positions;
  std::vector<Gpt2Block> blocks;
  nn::LayerNorm norm;
  /// Scores of each token's successor, [batch, positions, tokens]. x: [batch, positions], numbers
  /// of tokens; with caches, of those that follow what the caches have seen.
  [[nodiscard]] Tensor operator()(const Tensor& x, const Caches& caches = {}) const {
    Tensor place = nitinol::arange(x.shape()[1]);
    if (!caches.empty()) place = place + caches[0].length;
    Tensor y = tokens(x) + positions(place);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      y = blocks[i](y, caches.empty() ? std::nullopt : std::optional(caches[i]));
    }
    // Tied: the head has no weights of its own.
    return matmul(norm(y), transpose(tokens.weight));
  }
};

struct Gpt2Sizes {
  int64_t tokens = 50257;
  int64_t context = 1024;
  int64_t width = 768;
  int64_t heads = 12;
  int64_t depth = 12;
};

inline Gpt2 gpt2(const Gpt2Sizes& sizes) {
  const int64_t width = sizes.width;
  Gpt2 model = {.tokens = nn::embedding(sizes.tokens, width),
                .positions = nn::embedding(sizes.context, width),
                .blocks = {},
                .norm = nn::layer_norm(width)};
  for (int64_t i = 0; i < sizes.depth; ++i) {
    model.blocks.push_back(
        {.attention_norm = nn::layer_norm(width),
         .attention = nn::multi_head_attention(width, sizes.heads, {.is_causal = true}),
         .norm = nn::layer_norm(width),
         .up = nn::linear(width, 4 * width),
         .down = nn::linear(4 * width, width)});
  }
  for (const nn::Embedding* table : {&model.tokens, &model.positions})
    table->weight.set(nn::normal(table->weight.shape(), 0.02));
  return model;
}

inline Gpt2 gpt2_small() {
  return gpt2({});
}

inline Caches caches(const Gpt2& model, int64_t batch, int64_t positions) {
  Caches all;
  for (const Gpt2Block& block : model.blocks) {
    const int64_t heads = block.attention.heads;
    const int64_t width = model.tokens.weight.shape()[1];
    all.push_back(nn::key_value_cache(batch, heads, positions, width / heads));
  }
  return all;
}

/// The likeliest after x, [batch, 1]: a function for compile(), which has a Plan for prompts of
/// each length and one for all tokens behind them.
inline Tensor next_tokens(const Gpt2& model, const Caches& caches, const Tensor& x) {
  return argmax(model(x, caches).at({nitinol::all_of_axis, -1}), -1, nitinol::KeepDims::yes);
}

/// What the weights of Hugging Face are called here: nn::load_pytorch(path, model, hugging_face()).
inline nn::PytorchOptions hugging_face() {
  return {.rename = {{"transformer", ""},
                     {"wte", "tokens"},
                     {"wpe", "positions"},
                     {"h", "blocks"},
                     {"ln_1", "attention_norm"},
                     {"attn.c_attn", "attention.qkv"},
                     {"attn.c_proj", "attention.proj"},
                     {"ln_2", "norm"},
                     {"mlp.c_fc", "up"},
                     {"mlp.c_proj", "down"},
                     {"ln_f", "norm"}},
          .untransposed = {"c_attn", "c_proj", "c_fc"},
          .unused = {"lm_head", "attn.bias", "attn.masked_bias"}};
}

}  // namespace models
