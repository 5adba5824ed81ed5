// Initial values: the bounds and deviations that the papers give, from the right axes.
#include "nn/init.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

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

TEST_CASE("normal numbers can be cut, and gains, slopes and outputs be counted", "[nn]") {
  manual_seed(15);
  const Tensor cut = nn::truncated_normal({5000}, 0.5);
  CHECK(largest(cut) <= 1);
  CHECK(largest(cut) > 0.95);
  CHECK(stddev(cut).item<double>() == Approx(0.5 * 0.8796).epsilon(0.03));
  check_uniform(nn::xavier_uniform({100, 50}, f32, 3), 3 * std::sqrt(6.0 / 150));
  check_normal(nn::xavier_normal({100, 50}, f32, 3), 3 * std::sqrt(2.0 / 150));
  check_uniform(nn::kaiming_uniform({100, 50}, f32, {.slope = 2}), std::sqrt(6.0 / 5 / 100));
  check_normal(nn::kaiming_normal({100, 50}, f32, {.counts_outputs = true}), std::sqrt(2.0 / 50));
  check_normal(nn::kaiming_normal({30, 20, 3, 5}, f32, {.counts_outputs = true}),
               std::sqrt(2.0 / (15 * 30)));
}

TEST_CASE("orthogonal weights have rows or columns at right angles", "[nn]") {
  manual_seed(16);
  for (const Shape& shape :
       {Shape{5, 5}, Shape{3, 7}, Shape{7, 3}, Shape{4, 2, 3, 3}, Shape{1, 1}}) {
    const Tensor w = nn::orthogonal(shape, f64, 3);
    REQUIRE(w.shape() == shape);
    const Tensor flat = reshape(w, {shape[0], w.size() / shape[0]});
    const bool is_wide = flat.shape()[0] <= flat.shape()[1];
    const Tensor other = permute(flat, {1, 0});
    const Tensor products = is_wide ? matmul(flat, other) : matmul(other, flat);
    CHECK(largest(products - eye(products.shape()[0], {}, 0, f64) * 9) < 1e-13);
  }
  CHECK(!all(eq(nn::orthogonal({3, 3}), nn::orthogonal({3, 3}))).item<bool>());
  CHECK(nn::orthogonal({3, 3}, f16).dtype() == f16);
  // Signs are as random as the numbers: the first column is one of normal numbers, scaled.
  double positive = 0;
  for (int i = 0; i < 200; ++i)
    positive += nn::orthogonal({2, 2}).to_vector<float>()[0] > 0 ? 1 : 0;
  CHECK(positive > 70);
  CHECK(positive < 130);
}

TEST_CASE("dirac's convolutions give their channels as they came", "[nn]") {
  const Tensor x = reshape(arange(2 * 4 * 5 * 6, f32), {2, 4, 5, 6});
  const Tensor same = conv2d(x, nn::dirac({4, 4, 3, 3}), {.padding = 1});
  CHECK(largest(same - x) == 0);
  const Tensor fewer = conv2d(x, nn::dirac({2, 4, 1, 3}), {.padding = {0, 1}});
  CHECK(largest(fewer - x.at({all_of_axis, Range{0, 2}})) == 0);
  const Tensor more = conv2d(x, nn::dirac({6, 4, 1, 1}));
  CHECK(largest(more.at({all_of_axis, Range{0, 4}}) - x) == 0);
  CHECK(largest(more.at({all_of_axis, Range{4, 6}})) == 0);
  const Tensor grouped = conv2d(x, nn::dirac({4, 2, 3, 3}, f32, 2), {.padding = 1, .groups = 2});
  CHECK(largest(grouped - x) == 0);
  CHECK(
      nn::dirac({2, 3, 4}, f64).to_vector<double>() ==
      std::vector<double>{0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0});
}
