// The functions that several families of rows time.
#pragma once

#include "nitinol.h"

#include <cstdint>
#include <utility>

namespace nitinol::bench {

/// Polynomial of three vectors.
[[nodiscard]] Tensor w1a(const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& c);
/// gelu by tanh, spelt out.
[[nodiscard]] Tensor w1b(const Tensor& x);
/// Twelve operations, half of them transcendental.
[[nodiscard]] Tensor w1c(const Tensor& x);
/// Black-Scholes prices of a call and a put.
[[nodiscard]] std::pair<Tensor, Tensor> w1d(const Tensor& s, const Tensor& k, const Tensor& t);
/// Ten additions and multiplications.
[[nodiscard]] Tensor chain10(const Tensor& x, const Tensor& y);

/// Cheap operations, in no order that repeats.
[[nodiscard]] Tensor chain_of(const Tensor& x, int64_t operations);
/// 10,000 of them.
[[nodiscard]] Tensor chain10000(const Tensor& x);

/// Normal numbers in f32 from the stream of `seed`.
[[nodiscard]] Tensor normal(uint64_t seed, const Shape& shape);
/// The inputs s, k, t of w1d.
struct Market {
  explicit Market(int64_t n);
  Tensor s, k, t;
};

/// W4vii: one block of a transformer, normalised before.
struct Block {
  nn::LayerNorm before_attention;
  nn::MultiHeadAttention attention;
  nn::LayerNorm before_mlp;
  nn::Linear up, down;
  [[nodiscard]] Tensor operator()(const Tensor& input) const {
    const Tensor x = input + attention(before_attention(input));
    return x + down(gelu_tanh(up(before_mlp(x))));
  }
};

}  // namespace nitinol::bench
