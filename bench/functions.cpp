#include "bench/functions.h"

#include <cstdint>
#include <utility>

namespace nitinol::bench {

Tensor w1a(const Tensor& x, const Tensor& a, const Tensor& b, const Tensor& c) {
  return (a * x + b) * x - c;
}

Tensor w1b(const Tensor& x) {
  return 0.5 * x * (1 + tanh(0.7978845608 * (x + 0.044715 * (x * x * x))));
}

Tensor w1c(const Tensor& x) {
  return exp(-x * x) * sin(x) + log(1 + abs(x)) / sqrt(1 + x * x) + tanh(x);
}

std::pair<Tensor, Tensor> w1d(const Tensor& s, const Tensor& k, const Tensor& t) {
  constexpr double r = 0.03, sigma = 0.2;
  const Tensor v = sigma * sqrt(t);
  const Tensor d1 = (log(s / k) + (r + sigma * sigma / 2) * t) / v;
  const Tensor d2 = d1 - v;
  const Tensor n1 = 0.5 * (1 + erf(d1 * 0.7071067811865476));
  const Tensor n2 = 0.5 * (1 + erf(d2 * 0.7071067811865476));
  const Tensor kd = k * exp(-r * t);
  return {s * n1 - kd * n2, kd * (1 - n2) - s * (1 - n1)};
}

Tensor chain10(const Tensor& x, const Tensor& y) {
  Tensor z = x;
  for (int i = 0; i < 5; ++i) z = (z + y) * y;
  return z;
}

Tensor chain_of(const Tensor& x, int64_t operations) {
  uint32_t state = 1;
  Tensor before = abs(x);
  Tensor y = x;
  for (int64_t i = 0; i < operations; ++i) {
    state = state * 1664525 + 1013904223;
    const uint32_t choice = state >> 16 & 3;
    const Tensor next = choice == 0   ? y - before
                        : choice == 1 ? y * 0.5
                        : choice == 2 ? maximum(y, before)
                                      : abs(y);
    before = std::exchange(y, next);
  }
  return y;
}

Tensor chain10000(const Tensor& x) {
  return chain_of(x, 10'000);
}

Tensor normal(uint64_t seed, const Shape& shape) {
  manual_seed(seed);
  return randn(shape);
}

Market::Market(int64_t n) {
  const auto uniform = [n](double low, double high) { return rand({n}) * (high - low) + low; };
  manual_seed(1);
  s = uniform(80, 120);
  k = uniform(80, 120);
  t = uniform(0.1, 2);
}

}  // namespace nitinol::bench
