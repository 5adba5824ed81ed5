// Models of the literature, most of them those of examples/models.
#include "bench/families.h"
#include "bench/functions.h"
#include "bench/model_rows.h"
#include "examples/models/resnet.h"
#include "examples/models/tagger.h"
#include "examples/models/unet.h"
#include "examples/models/vit.h"

#include <vector>

namespace nitinol::bench {

namespace {

/// The encoder of BERT (J. Devlin et al., arXiv:1810.04805) behind its embeddings.
struct Bert {
  std::vector<nn::TransformerEncoderLayer> layers;
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    Tensor y = x;
    for (const nn::TransformerEncoderLayer& layer : layers) y = layer(y);
    return y;
  }
};

Bert bert() {
  Bert model;
  for (int i = 0; i < 12; ++i) {
    model.layers.push_back(nn::transformer_encoder_layer(
        768, 12, 3072, {.dropout = 0, .activation = nn::Nonlinearity::gelu}));
  }
  return model;
}

/// A tagger that knows how long its sentences are.
struct Reader {
  models::Tagger tagger;
  Tensor lengths;
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return tagger(x, lengths); }
};

}  // namespace

void zoo_rows(Timer& timer) {
  const auto call = [](const auto& model, const Tensor& x) { return model(x); };
  // Operations of an image of 224 by 224, and of a position's.
  constexpr double resnet50_size = 4.09e9, vit_size = 1.26e9, bert_size = 128 * 12 * 7.3e6;
  if (timer.wants("W4v.infer"))
    infer_row(timer, "W4v.infer", 2 * resnet50_size, models::resnet50(),
              normal(3, {1, 3, 224, 224}), call);
  if (timer.wants("W4vi.infer"))
    infer_row(timer, "W4vi.infer", 2 * bert_size, bert(), normal(3, {1, 128, 768}), call);
  train_row<models::VisionTransformer>(timer, "W4.vit", 6 * 4 * vit_size, models::vit_tiny,
                                       normal(3, {4, 3, 224, 224}), cross_entropy_of(4));
  const Tensor pixels = reshape(arange(128 * 128), {1, 128, 128}) % 2;
  train_row<models::UNet>(
      timer, "W4.unet", 6 * 12.0e9, [] { return models::unet(); }, normal(3, {1, 3, 128, 128}),
      [pixels](const Tensor& out) { return nn::cross_entropy(moveaxis(out, 1, -1), pixels); });
  const Tensor lengths = arange(16) % 12 + 1, place = reshape(arange(12), {1, 12});
  const Tensor words = (reshape(arange(16 * 12), {16, 12}) * 97 % 19999 + 1) *
                       cast(place < reshape(lengths, {16, 1}), i64);
  const Tensor tags = cast(words > 0, i64) * (words % 17 + 1);
  constexpr double gru_size = 16.0 * 12 * 2 * 3 * 256 * (128 + 256 + 512 + 256);
  train_row<Reader>(
      timer, "W4.gru", 6 * gru_size,
      [&] { return Reader{.tagger = models::tagger(), .lengths = lengths}; }, words,
      [tags](const Tensor& out) { return models::tagger_loss(out, tags); });
}

}  // namespace nitinol::bench
