#include "bench/families.h"
#include "bench/functions.h"
#include "bench/model_rows.h"

#include <cmath>
#include <string>
#include <vector>

namespace nitinol::bench {

namespace {

/// Normal weights of variance 1 / in, small biases: the harness's own.
nn::Linear layer(uint64_t seed, int64_t in, int64_t out) {
  const double scale = 1 / std::sqrt(static_cast<double>(in));
  return {.weight = parameter(normal(seed, {in, out}) * scale),
          .bias = parameter(normal(seed + 1, {out}) * 0.02)};
}

nn::Conv2d conv_layer(uint64_t seed, int64_t in, int64_t out) {
  const double scale = 1 / std::sqrt(static_cast<double>(in * 3 * 3));
  return {.weight = parameter(normal(seed, {out, in, 3, 3}) * scale),
          .bias = parameter(normal(seed + 1, {out}) * 0.02)};
}

/// i: 100 -> 128 -> 10.
struct Mlp {
  nn::Linear hidden, out;
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return out(relu(hidden(x))); }
};

/// ii: 784 -> 256 -> 128 -> 10 with batch norm and dropout.
struct NormMlp {
  struct Block {
    nn::Linear linear;
    nn::BatchNorm norm;
    nn::Dropout drop;
    [[nodiscard]] Tensor operator()(const Tensor& x) const { return drop(relu(norm(linear(x)))); }
  };
  Block first, second;
  nn::Linear out;
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return out(second(first(x))); }
};

/// iii: 50 steps of 128 -> 256, and a layer of scores on the last one.
struct Recurrent {
  nn::Lstm lstm;
  nn::Linear out;
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return out(lstm(x).last.hidden[0]); }
};

/// iv: images of 28 by 28 through two convolutions and two linear layers.
struct Cnn {
  nn::Conv2d first, second;
  nn::Linear hidden, out;
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor y = max_pool2d(relu(second(max_pool2d(relu(first(x)), 2))), 2);
    return out(relu(hidden(flatten(y, 1))));
  }
};

}  // namespace

void model_rows(Timer& timer) {
  const auto call = [](const auto& model, const Tensor& x) { return model(x); };
  const auto mlp = [] { return Mlp{layer(10, 100, 128), layer(12, 128, 10)}; };
  for (const int64_t batch : {32, 128, 1000}) {
    const double operations = 6.0 * static_cast<double>(batch) * (100 * 128 + 128 * 10);
    train_row<Mlp>(timer, "W4i.train.b" + std::to_string(batch), operations, mlp,
                   normal(3, {batch, 100}), cross_entropy_of(batch));
  }
  const auto wide = [] { return Mlp{layer(14, 16, 512), layer(16, 512, 16)}; };
  infer_row(timer, "W4i.wide", 2.0 * 65536 * 512 * 32, wide(), normal(3, {65536, 16}), call);
  const auto norm_mlp = [] {
    const auto block = [](uint64_t seed, int64_t in, int64_t out) {
      return NormMlp::Block{layer(seed, in, out), nn::batch_norm(out), nn::dropout(0.5)};
    };
    return NormMlp{block(20, 784, 256), block(22, 256, 128), layer(24, 128, 10)};
  };
  const double norm_mlp_size = 128.0 * (784 * 256 + 256 * 128 + 128 * 10);
  train_row<NormMlp>(timer, "W4ii.train", 6 * norm_mlp_size, norm_mlp, normal(3, {128, 784}),
                     cross_entropy_of(128));
  infer_row(timer, "W4ii.infer", 2 * norm_mlp_size, norm_mlp(), normal(3, {128, 784}), call);

  const auto recurrent = [] { return Recurrent{nn::lstm(128, 256), layer(30, 256, 10)}; };
  const double lstm_size = 50.0 * 32 * 1024 * (128 + 256);
  train_row<Recurrent>(timer, "W4iii.train", 6 * lstm_size, recurrent, normal(3, {50, 32, 128}),
                       cross_entropy_of(32));
  infer_row(timer, "W4iii.infer", 2 * lstm_size, recurrent(), normal(3, {50, 32, 128}),
            [](const Recurrent& model, const Tensor& x) { return model.lstm(x).sequence; });

  const auto cnn = [] {
    return Cnn{conv_layer(50, 1, 32), conv_layer(52, 32, 64), layer(54, 1600, 128),
               layer(56, 128, 10)};
  };
  const double cnn_size = 64.0 * (26 * 26 * 32 * 9 + 11 * 11 * 64 * 288 + 1600 * 128 + 128 * 10);
  for (const DType dtype : {f32, bf16}) {
    train_row<Cnn>(timer, dtype == f32 ? "W4iv.train" : "W4iv.bf16", 6 * cnn_size, cnn,
                   normal(3, {64, 1, 28, 28}), cross_entropy_of(64), dtype);
  }
  infer_row(timer, "W4iv.infer", 2 * cnn_size, cnn(), normal(3, {64, 1, 28, 28}), call);

  const auto block = [] {
    return Block{.before_attention = nn::layer_norm(768),
                 .attention = {.qkv = layer(40, 768, 2304),
                               .proj = layer(42, 768, 768),
                               .heads = 12,
                               .is_causal = true},
                 .before_mlp = nn::layer_norm(768),
                 .up = layer(44, 768, 3072),
                 .down = layer(46, 3072, 768)};
  };
  const double block_size = 512.0 * 768 * (2304 + 768 + 2 * 3072 + 2 * 128);
  for (const DType dtype : {f32, bf16}) {
    train_row<Block>(
        timer, dtype == f32 ? "W4vii.train" : "W4vii.bf16", 6 * block_size, block,
        normal(3, {4, 128, 768}), [](const Tensor& out) { return mean(square(out)); }, dtype);
  }
}

}  // namespace nitinol::bench
