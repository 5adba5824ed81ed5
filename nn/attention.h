// Attention, and the layers of transformers (A. Vaswani et al., arXiv:1706.03762).
#pragma once

#include "core/tensor.h"
#include "nn/layers.h"

#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)

namespace nitinol::nn {

struct AttentionOptions {
  std::optional<Tensor> mask = {};  ///< which keys a query looks at
  /// No query looks at keys after its own; the last query's own key is the last one, so that fewer
  /// queries than keys go on where others stopped.
  bool is_causal = false;
  std::optional<double> scale = {};  ///< of products of queries and keys; 1 / sqrt(width)
  double dropout = 0;                ///< of what a query looks at
  /// So many queries at a time, whose scores are computed again for the gradient: memory grows with
  /// the number of positions, not with its square. 0: all at once.
  int64_t block = 0;
  /// The axis before the last two is of heads, of which keys and values have fewer: each of theirs
  /// serves as many neighbours.
  bool shares_heads = false;
};
/// softmax(q k^T scale) v over the last two axes, [positions, width]; positions and width of the
/// values may be others than the queries'. Axes before them broadcast.
///
/// The mask says which keys a query looks at, and broadcasts to [..., queries, keys]: booleans,
/// true where it looks, or numbers that are added to the scores, of which -infinity hides a key.
/// What looks at nothing is 0, and so are its gradients.
///
/// Products of other sizes may be rounded otherwise: results with a `block` are equal to those
/// without up to rounding, and eager and compiled ones to the bit.
/// Throws Error(shape) for operands and masks that do not fit, Error(dtype) for masks of integers.
[[nodiscard]] Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                               const AttentionOptions& options = {});

/// Keys and values of the positions that a MultiHeadAttention has seen: it appends those of its
/// input, and looks at all. One Plan serves all lengths. To begin again set `length` to 0.
struct KeyValueCache {
  Variable keys, values;  ///< [batch, heads, positions, width]
  Variable length;        ///< an int64 number: how many of the positions are filled
};
/// For at most `positions` positions; `heads` and `width` are those of keys: of one head.
[[nodiscard]] KeyValueCache key_value_cache(Integer batch, Integer heads, Integer positions,
                                            Integer width, DType dtype = f32);

struct AttentionInputs {
  std::optional<Tensor> memory = {};  ///< [batch, keys, width]: looked at instead of x
  /// [queries, keys] or [batch or 1, heads or 1, queries or 1, keys]: which keys a query looks at.
  std::optional<Tensor> mask = {};
  /// What came before x; queries look at no keys after their own. `keys` of a mask are all its
  /// positions then.
  std::optional<KeyValueCache> cache = {};
};
/// Attention with several heads.
struct MultiHeadAttention {
  Linear qkv;   ///< width -> queries, keys and values, of all heads each
  Linear proj;  ///< width -> width
  int64_t heads = 1;
  int64_t key_heads = 0;   ///< of keys and values, each for as many neighbours; 0: `heads`
  bool is_causal = false;  ///< position i sees positions 0 ... i
  double dropout = 0;      ///< of what a query looks at, while training
  int64_t block = 0;       ///< so many queries at a time (attention()); 0: all
  double rotary_base = 0;  ///< queries and keys are turned by rotary(); 0: they are not
  Training training = {true, "MultiHeadAttention.training"};
  /// x: [batch, positions, width]. Throws Error(value) for more positions than a cache holds.
  [[nodiscard]] Tensor operator()(const Tensor& x, const AttentionInputs& inputs = {}) const;
};
struct MultiHeadAttentionOptions {
  int64_t key_heads = 0;
  bool is_causal = false;
  double dropout = 0;
  int64_t block = 0;
  double rotary_base = 0;
  bool has_bias = true;
  DType dtype = f32;
};
/// Throws Error(value) unless `heads` divides `width`, and `key_heads` the heads.
[[nodiscard]] MultiHeadAttention multi_head_attention(
    Integer width, Integer heads, const MultiHeadAttentionOptions& options = {});

// ---- positions

struct RotaryOptions {
  double base = 10000;
  /// Neighbours are turned together, (0, 1), (2, 3), ...; else halves, (0, width / 2), ...
  bool is_interleaved = false;
};
/// Turns pairs of features by angles that grow with the position, so that a product of two depends
/// on their distance (J. Su et al., arXiv:2104.09864). x: [..., positions, even width]; positions:
/// numbers, [positions].
[[nodiscard]] Tensor rotary(const Tensor& x, const Tensor& positions,
                            const RotaryOptions& options = {});

struct SinusoidalOptions {
  double base = 10000;
  bool is_interleaved = true;  ///< sines at even features and cosines at odd ones; else halves
};
/// Sines and cosines of numbers, of wave lengths from 2 pi to 2 pi base: [..., width] of positions
/// or times [...]. Throws Error(value) unless the width is even.
[[nodiscard]] Tensor sinusoidal_positions(const Tensor& positions, Integer width,
                                          const SinusoidalOptions& options = {});

// ---- transformers

struct TransformerOptions {
  double dropout = 0.1;
  Nonlinearity activation = Nonlinearity::relu;
  bool is_norm_first = false;  ///< each part normalises what it takes, else what it has added to
  double eps = 1e-5;           ///< of LayerNorm
  bool has_bias = true;
  DType dtype = f32;
};
/// Attention, then two Linear layers for each position; each is added to what it was given.
struct TransformerEncoderLayer {
  MultiHeadAttention attention;
  LayerNorm attention_norm;
  Linear hidden, out;  ///< width -> hidden -> width
  LayerNorm out_norm;
  Dropout dropout;
  Nonlinearity activation = Nonlinearity::relu;
  bool is_norm_first = false;
  /// x: [batch, positions, width].
  [[nodiscard]] Tensor operator()(const Tensor& x, const std::optional<Tensor>& mask = {}) const;
};
[[nodiscard]] TransformerEncoderLayer transformer_encoder_layer(
    Integer width, Integer heads, Integer hidden, const TransformerOptions& options = {});

struct DecoderInputs {
  std::optional<Tensor> mask = {};          ///< of x; none looks at keys after its own
  std::optional<Tensor> memory_mask = {};   ///< of the memory
  std::optional<KeyValueCache> cache = {};  ///< what came before x
};
/// Causal attention, then attention to a memory, then two Linear layers for each position.
struct TransformerDecoderLayer {
  MultiHeadAttention attention;
  LayerNorm attention_norm;
  MultiHeadAttention memory_attention;
  LayerNorm memory_norm;
  Linear hidden, out;  ///< width -> hidden -> width
  LayerNorm out_norm;
  Dropout dropout;
  Nonlinearity activation = Nonlinearity::relu;
  bool is_norm_first = false;
  /// x: [batch, positions, width]; memory: [batch, keys, width].
  [[nodiscard]] Tensor operator()(const Tensor& x, const Tensor& memory,
                                  const DecoderInputs& inputs = {}) const;
};
[[nodiscard]] TransformerDecoderLayer transformer_decoder_layer(
    Integer width, Integer heads, Integer hidden, const TransformerOptions& options = {});

}  // namespace nitinol::nn

#pragma GCC visibility pop
