#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

namespace nitinol::bench {

namespace {

constexpr struct {
  const char* suffix;
  int64_t count;
} sizes[] = {{".n1e3", 1'000}, {".n1e5", 100'000}, {".n1e6", 1'000'000}, {".n1.6e7", 16'000'000}};

/// What a chain moves: `arrays` arrays of n floats, read or written once.
Work arrays_of(int arrays, int64_t n) {
  return {.bytes = 4.0 * arrays * static_cast<double>(n)};
}

}  // namespace

void elementwise_rows(Timer& timer) {
  for (const auto& [suffix, n] : sizes) {
    const std::string name = suffix;
    if (timer.wants("W1a" + name)) {
      time_both(timer, "W1a" + name, arrays_of(5, n), w1a, normal(0, {n}), normal(1, {n}),
                normal(2, {n}), normal(3, {n}));
    }
    if (timer.wants("W1b" + name))
      time_both(timer, "W1b" + name, arrays_of(2, n), w1b, normal(0, {n}));
    if (timer.wants("W1c" + name))
      time_both(timer, "W1c" + name, arrays_of(2, n), w1c, normal(0, {n}));
    if (timer.wants("W1d" + name)) {
      const Market market(n);
      time_both(timer, "W1d" + name, arrays_of(5, n), w1d, market.s, market.k, market.t);
    }
  }
  for (const DType dtype : {f16, bf16}) {
    constexpr int64_t n = 1'000'000;
    const std::string name = fmt::format("W1b.{}.n1e6", dtype == f16 ? "f16" : "bf16");
    if (timer.wants(name))
      time_both(timer, name, {.bytes = 2.0 * 2 * n}, w1b, normal(0, {n}).to(dtype));
  }
  if (timer.wants("W1e")) {
    constexpr int64_t rows = 1024, columns = 1024;
    const auto w1e = [](const Tensor& x, const Tensor& scale, const Tensor& bias,
                        const Tensor& residual) -> Tensor {
      return relu(x * scale + bias) + residual;
    };
    time_both(timer, "W1e", arrays_of(3, rows * columns), w1e, normal(0, {rows, columns}),
              normal(1, {columns}), normal(2, {columns}), normal(3, {rows, columns}));
  }
}

void result_rows(Timer& timer) {
  if (!timer.wants("results")) return;
  const auto rotation = [](const Tensor& x, const Tensor& y, const Tensor& c, const Tensor& s) {
    return std::pair(c * x - s * y, s * x + c * y);
  };
  const auto lorenz = [](const Tensor& x, const Tensor& y, const Tensor& z) {
    return std::vector{10 * (y - x), x * (28 - z) - y, x * y - 2.6 * z};
  };
  const auto sincos = [](const Tensor& x) { return std::pair(sin(x), cos(x)); };
  for (const auto& [suffix, n] : sizes) {
    const auto name = [end = suffix](const char* which) {
      return fmt::format("results.{}{}", which, end);
    };
    const Tensor x = normal(0, {n}), y = normal(1, {n}), z = normal(2, {n}), w = normal(3, {n});
    time_both(timer, name("rotation"), arrays_of(6, n), rotation, x, y, z, w);
    time_both(timer, name("lorenz"), arrays_of(6, n), lorenz, x, y, z);
    time_both(timer, name("sincos"), arrays_of(3, n), sincos, x);
  }
}

void power_rows(Timer& timer) {
  if (!timer.wants("pow")) return;
  constexpr int64_t n = 100'000;
  const Tensor x = normal(0, {n});
  const auto square = [](const Tensor& v) -> Tensor { return pow(v, 2) + 1; };
  const auto product = [](const Tensor& v) -> Tensor { return v * v + 1; };
  const auto slope = [](const auto& f) {
    return grad([f](const Tensor& v) -> Tensor { return sum(f(v)); });
  };
  const Work once = arrays_of(2, n);
  time_both(timer, "pow.2", once, square, x);
  time_both(timer, "pow.2.product", once, product, x);
  time_both(timer, "pow.2.grad", once, slope(square), x);
  time_both(timer, "pow.2.grad.product", once, slope(product), x);
  time_both(
      timer, "pow.0.5", once, [](const Tensor& v) -> Tensor { return pow(v, 0.5); }, abs(x));
  time_both(
      timer, "pow.0.5.root", once, [](const Tensor& v) -> Tensor { return sqrt(v); }, abs(x));
  time_both(
      timer, "pow.2.5", once, [](const Tensor& v) -> Tensor { return pow(v, 2.5); }, abs(x));
  const auto power = [](const Tensor& v, const Tensor& exponents) -> Tensor {
    return pow(v, exponents);
  };
  const Work thrice = arrays_of(3, n);
  for (const DType dtype : {f32, f64}) {
    const Tensor base = abs(x).to(dtype);
    const Tensor roots = full({n}, 0.5, dtype), others = full({n}, 2.5, dtype);
    const std::string name = dtype == f32 ? "pow.tensor" : "pow.tensor.f64";
    time_both(timer, name + ".0.5", thrice, power, base, roots);
    time_both(timer, name + ".2.5", thrice, power, base, others);
    time_both(timer, name + ".mixed", thrice, power, base, where(x.to(dtype) > 0, roots, others));
  }
}

}  // namespace nitinol::bench
