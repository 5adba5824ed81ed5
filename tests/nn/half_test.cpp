// Layers, losses and norms of 16-bit numbers: what is squared or summed must not overflow.
#include "nitinol.h"
#include "tests/jit/calls.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace nitinol;

TEST_CASE("normalisation of float16 squares in float32", "[nn][half]") {
  const nn::RmsNorm rms = nn::rms_norm(4, 1e-6, f16);
  const Tensor y = rms(full({1, 4}, 300, f16));
  CHECK(y.dtype() == f16);
  CHECK(y[0][0].item<double>() == 1);
  const nn::BatchNorm norm = nn::to(nn::batch_norm(2), f16);
  const Tensor x = concat({full({8, 2}, 300, f16), full({8, 2}, -300, f16)});
  const Tensor z = norm(x);
  CHECK(z.dtype() == f16);
  CHECK(z[0][0].item<double>() == Approx(1));
  CHECK(norm.running_var.dtype() == f16);
  CHECK(norm.running_var.get()[0].item<double>() ==
        Approx(0.9 + 0.1 * 90000 * 16 / 15).epsilon(1e-3));
  CHECK(nn::layer_norm(2, {.dtype = f16})(tensor({{300, -300}}, f16))[0][0].item<double>() ==
        Approx(1));
}

TEST_CASE("batch norm of numbers far from 0", "[nn][half]") {
  manual_seed(3);
  const Tensor x = randn({4096, 2}) + 1e5;
  const Tensor wide = cast(x, f64);
  const Tensor deviation = wide - mean(wide, {0});
  const Tensor expected = deviation * rsqrt(mean(square(deviation), {0}) + 1e-5);
  const Tensor got = nn::batch_norm(2)(x);
  CHECK(max(abs(cast(got, f64) - expected)).item<double>() < 2e-6);
}

TEST_CASE("attention of bfloat16 keeps its scores in float32", "[nn][half]") {
  manual_seed(1);
  const Tensor q = cast(randn({8, 64, 32}) * 4, bf16), k = cast(randn({8, 64, 32}) * 4, bf16);
  const Tensor v = cast(randn({8, 64, 32}), bf16);
  const Tensor got = nn::attention(q, k, v);
  CHECK(got.dtype() == bf16);
  const Tensor expected = nn::attention(cast(q, f64), cast(k, f64), cast(v, f64));
  CHECK(max(abs(cast(got, f64) - expected)).item<double>() < 0.01);  // half a unit of 4
}

TEST_CASE("losses of float16 do not overflow", "[nn][half]") {
  const Tensor x = full({4}, 300, f16), y = full({4}, 100, f16);
  CHECK(nn::mse_loss(x, y).item<double>() == 40000);
  CHECK(nn::huber_loss(x, y).item<double>() == 199.5);
  CHECK(nn::mse_loss(x, y).dtype() == f16);
}

TEST_CASE("clip_gradient_norm of any size and dtype", "[nn][half]") {
  const auto clip = [](DType dtype, double gradient, double largest) {
    const Variable p = parameter(zeros({3}, dtype));
    p.set_grad(full({3}, gradient, dtype));
    const Tensor norm = nn::clip_gradient_norm({p}, largest);
    return std::tuple(norm.dtype(), norm.item<double>(), p.grad()[0].item<double>());
  };
  const double root = std::sqrt(3.0);
  for (const auto& [dtype, digits] : {std::pair(f32, 1e-6), std::pair(f64, 1e-14)}) {
    for (const double size : {1e20, 1.0, 1e-30}) {
      CAPTURE(name_of(dtype), size);
      const auto [result, norm, gradient] = clip(dtype, size, 1);
      CHECK(result == dtype);
      CHECK(norm == Approx(size * root).epsilon(digits));
      const double scale = std::min(1 / (size * root + 1e-6), 1.0);
      CHECK(gradient == Approx(size * scale).epsilon(digits));
    }
  }
  const auto [result, norm, gradient] = clip(f16, 60000, 1e-3);
  CHECK(result == f32);
  CHECK(norm == Approx(60000 * root));
  CHECK(gradient == Approx(1e-3 / root).epsilon(1e-3));
}
