#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

#include <fmt/format.h>

namespace nitinol::bench {

namespace {

Work product_of(int64_t m, int64_t k, int64_t n) {
  return {.flops = 2.0 * static_cast<double>(m) * static_cast<double>(k) * static_cast<double>(n)};
}

}  // namespace

void matmul_rows(Timer& timer) {
  for (const DType dtype : {f32, bf16}) {
    for (const int64_t n : {64, 256, 1024, 2048}) {
      const std::string row = fmt::format("W5.{}mm{}", dtype == f32 ? "" : "bf16.", n);
      if (!timer.wants(row)) continue;
      const auto product = [](const Tensor& a, const Tensor& b) -> Tensor { return matmul(a, b); };
      time_both(timer, row, product_of(n, n, n), product, normal(0, {n, n}).to(dtype),
                normal(1, {n, n}).to(dtype));
    }
  }
  for (const int64_t m : {16, 32}) {
    const std::string row = fmt::format("W5.kept{}x1024x1024", m);
    if (!timer.wants(row)) continue;
    const Variable weight(normal(1, {1024, 1024}));
    const auto layer = [&](const Tensor& x) -> Tensor { return matmul(x, transpose(weight)); };
    time_both(timer, row, product_of(m, 1024, 1024), layer, normal(0, {m, 1024}));
  }
  constexpr struct { int64_t m, k, n; } layers[] = {{1024, 1024, 1024}, {128, 768, 3072}};
  for (const auto& [m, k, n] : layers) {
    const std::string row = fmt::format("W5.mbg{}x{}x{}", m, k, n);
    if (!timer.wants(row)) continue;
    const auto layer = [](const Tensor& x, const Tensor& w, const Tensor& bias) -> Tensor {
      return gelu_tanh(matmul(x, w) + bias);
    };
    time_both(timer, row, product_of(m, k, n), layer, normal(0, {m, k}), normal(1, {k, n}),
              normal(2, {n}));
  }
}

}  // namespace nitinol::bench
