// Initial values: the bounds and deviations that the papers give, from the right axes.
#include "nn/init.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace nitinol;

namespace {

double largest(const Tensor& x) {
  return max(abs(x)).item<double>();
}

/// Nearly reaches the bound, on both sides, and never passes it; spread evenly.
void check_uniform(const Tensor& x, double bound) {
  INFO("bound " << bound << ", largest " << largest(x));
  CHECK(largest(x) <= bound * (1 + 1e-6));
  CHECK(max(x).item<double>() > 0.99 * bound);
  CHECK(min(x).item<double>() < -0.99 * bound);
  CHECK(stddev(x).item<double>() == Approx(bound / std::sqrt(3.0)).epsilon(0.03));
  CHECK(std::abs(mean(x).item<double>()) < 0.03 * bound);
}

void check_normal(const Tensor& x, double deviation) {
  INFO("deviation " << deviation);
  CHECK(stddev(x).item<double>() == Approx(deviation).epsilon(0.03));
  CHECK(std::abs(mean(x).item<double>()) < 0.03 * deviation);
  CHECK(largest(x) > 3 * deviation);
}

}  // namespace

TEST_CASE("initial values of weights [in, out] are as wide as their paper says", "[nn]") {
  manual_seed(11);
  check_uniform(nn::xavier_uniform({100, 50}), std::sqrt(6.0 / 150));
  check_normal(nn::xavier_normal({100, 50}), std::sqrt(2.0 / 150));
  check_uniform(nn::kaiming_uniform({100, 50}), std::sqrt(6.0 / 100));
  check_normal(nn::kaiming_normal({100, 50}), std::sqrt(2.0 / 100));
  check_uniform(nn::kaiming_uniform({50, 100}), std::sqrt(6.0 / 50));
}

TEST_CASE("the window of a convolution counts to both sides", "[nn]") {
  manual_seed(12);
  // [out, in, window]: of Conv2d, whose own weights these are.
  const Shape shape = nn::conv2d(20, 30, {3, 5}).weight.shape();
  REQUIRE(shape == Shape{30, 20, 3, 5});
  check_uniform(nn::xavier_uniform(shape), std::sqrt(6.0 / (15 * 50)));
  check_normal(nn::xavier_normal(shape), std::sqrt(2.0 / (15 * 50)));
  check_uniform(nn::kaiming_uniform(shape), std::sqrt(6.0 / (15 * 20)));
  check_normal(nn::kaiming_normal(shape), std::sqrt(2.0 / (15 * 20)));
}

TEST_CASE("uniform and normal take their width, shape and dtype", "[nn]") {
  manual_seed(13);
  check_uniform(nn::uniform({5000}, 0.25), 0.25);
  check_normal(nn::normal({5000}, 2.5), 2.5);
  for (const DType dtype : {f16, bf16, f32, f64}) {
    CHECK(nn::uniform({3, 2}, 1, dtype).dtype() == dtype);
    CHECK(nn::kaiming_normal({3, 2}, dtype).dtype() == dtype);
    CHECK(nn::xavier_uniform({3, 2}, dtype).shape() == Shape{3, 2});
  }
}

TEST_CASE("layers start within 1 / sqrt(in), whatever they are", "[nn]") {
  manual_seed(14);
  const nn::Linear linear = nn::linear(64, 200);
  check_uniform(linear.weight, 1 / 8.0);
  CHECK(largest(*linear.bias) <= 1 / 8.0);
  CHECK(largest(*linear.bias) > 0.9 / 8);
  const nn::Conv2d conv = nn::conv2d(32, 64, {2, 4}, {.conv = {.groups = 2}});
  check_uniform(conv.weight, 1 / std::sqrt(16.0 * 8));
  CHECK(largest(*conv.bias) <= 1 / std::sqrt(16.0 * 8));
  const nn::Lstm lstm = nn::lstm(50, 25);
  check_uniform(lstm.layers[0].input_weight, 1 / 5.0);
  check_uniform(lstm.layers[0].hidden_weight, 1 / 5.0);
  check_normal(nn::embedding(100, 50).weight, 1);
}
