// A variational autoencoder (D. Kingma, M. Welling, arXiv:1312.6114) of images of numbers from 0 to
// 1.
#pragma once

#include <nitinol/nitinol.h>

#include <cstdint>

namespace models {

namespace nn = nitinol::nn;
using nitinol::Tensor;

/// What a Vae makes of images.
struct Seen {
  Tensor logits;        ///< of the pixels that it would draw, [batch, pixels]
  Tensor mean;          ///< [batch, code]
  Tensor log_variance;  ///< [batch, code]
};

struct Vae {
  nn::Linear encode, mean, log_variance;
  nn::Linear decode, out;
  /// x: [batch, pixels].
  [[nodiscard]] Seen operator()(const Tensor& x) const {
    const Tensor hidden = relu(encode(x));
    const Tensor middle = mean(hidden);
    const Tensor spread = log_variance(hidden);
    const Tensor code = middle + randn_like(middle) * exp(spread / 2);
    return {.logits = draw(code), .mean = middle, .log_variance = spread};
  }
  [[nodiscard]] Tensor draw(const Tensor& code) const { return out(relu(decode(code))); }
};

struct VaeSizes {
  int64_t pixels = 784;
  int64_t hidden = 400;
  int64_t code = 20;
};

inline Vae vae(const VaeSizes& sizes = {}) {
  return {.encode = nn::linear(sizes.pixels, sizes.hidden),
          .mean = nn::linear(sizes.hidden, sizes.code),
          .log_variance = nn::linear(sizes.hidden, sizes.code),
          .decode = nn::linear(sizes.code, sizes.hidden),
          .out = nn::linear(sizes.hidden, sizes.pixels)};
}

/// What the pixels and the code cost, as a sum over an image and a mean over the batch.
inline Tensor vae_loss(const Seen& seen, const Tensor& x) {
  const Tensor pixels = nn::bce_with_logits(seen.logits, x, {.reduction = nn::Reduction::sum});
  const Tensor variance = exp(seen.log_variance);
  const Tensor code = sum(square(seen.mean) + variance - 1 - seen.log_variance) / 2;
  return (pixels + code) / x.shape()[0];
}

}  // namespace models
