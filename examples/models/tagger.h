// A tagger: a label for each word of a sentence, from a Gru that reads it in both directions.
#pragma once

#include <nitinol/nitinol.h>

#include <cstdint>

namespace models {

namespace nn = nitinol::nn;
using nitinol::Tensor;

/// Of words behind the end of a sentence, and of their tags.
inline constexpr int64_t padding = 0;

/// Scores of tags, [batch, positions, tags], of words, [batch, positions], of which so many count
/// as `lengths` says, [batch].
struct Tagger {
  nn::Embedding words;
  nn::Gru gru;
  nn::Linear head;
  [[nodiscard]] Tensor operator()(const Tensor& x, const Tensor& lengths) const {
    return head(gru(words(x), {}, lengths).sequence);
  }
};

struct TaggerSizes {
  int64_t words = 20000;
  int64_t tags = 18;
  int64_t width = 128;
  int64_t hidden = 256;
};

inline Tagger tagger(const TaggerSizes& sizes = {}) {
  return {.words = nn::embedding(sizes.words, sizes.width, {.padding = padding}),
          .gru = nn::gru(sizes.width, sizes.hidden,
                         {.layers = 2, .is_bidirectional = true, .is_batch_first = true}),
          .head = nn::linear(2 * sizes.hidden, sizes.tags)};
}

/// The mean over all words; tags: [batch, positions].
inline Tensor tagger_loss(const Tensor& scores, const Tensor& tags) {
  return nn::cross_entropy(scores, tags, {.ignore_index = padding});
}

}  // namespace models
