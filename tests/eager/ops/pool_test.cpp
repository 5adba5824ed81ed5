#include "eager/ops/pool.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace nitinol;

namespace {

using Floats = std::vector<float>;

Tensor image(const Numbers& numbers) {
  const Tensor x = tensor(numbers, f32);
  return reshape(x, {1, 1, x.shape()[0], x.shape()[1]});
}

Tensor gradient_of_pool(const Tensor& x, Pair kernel, const MaxPool2dOptions& options = {}) {
  const Variable v = parameter(x);
  sum(max_pool2d(v, kernel, options)).backward();
  return v.grad();
}

}  // namespace

TEST_CASE("max_pool2d gives each window's largest element", "[eager][pool]") {
  const Tensor x = image({{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 10, 11, 12}, {-1, -2, -3, -4}});
  CHECK(max_pool2d(x, 2).to_vector<float>() == Floats{6, 8, 10, 12});
  CHECK(max_pool2d(x, {1, 3}, {.stride = 1}).to_vector<float>() ==
        Floats{3, 4, 7, 8, 11, 12, -1, -2});
  CHECK(max_pool2d(x, 3, {.stride = 2, .padding = 1}).to_vector<float>() == Floats{6, 8, 10, 12});
  // Padding is less than any number.
  CHECK(max_pool2d(image({{-5}}), 2, {.padding = 1}).to_vector<float>() == Floats{-5});
  CHECK(max_pool2d(x.to(i8), 2).dtype() == i8);
}

TEST_CASE("the gradient of max_pool2d goes to the first of equal elements", "[eager][pool]") {
  CHECK(gradient_of_pool(image({{1, 1}, {1, 1}}), 2).to_vector<float>() == Floats{1, 0, 0, 0});
  CHECK(gradient_of_pool(image({{0, 2}, {2, 1}}), 2).to_vector<float>() == Floats{0, 1, 0, 0});
  CHECK(gradient_of_pool(image({{1, 3, 2}}), {1, 2}, {.stride = 1}).to_vector<float>() ==
        Floats{0, 2, 0});
}

TEST_CASE("NaN is the largest element of its window", "[eager][pool]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = image({{1, nan, -inf, -inf}, {inf, 2, -inf, -inf}});
  const Floats y = max_pool2d(x, 2).to_vector<float>();
  CHECK(std::isnan(y[0]));
  CHECK(y[1] == -inf);
  CHECK(gradient_of_pool(x, 2).to_vector<float>() == Floats{0, 1, 1, 0, 0, 0, 0, 0});
}

TEST_CASE("avg_pool2d gives each window's mean", "[eager][pool]") {
  const Tensor x = image({{1, 2, 3, 4}, {5, 6, 7, 8}});
  CHECK(avg_pool2d(x, 2).to_vector<float>() == Floats{3.5, 5.5});
  CHECK(avg_pool2d(x, {2, 1}).to_vector<float>() == Floats{3, 4, 5, 6});
  CHECK(avg_pool2d(image({{4, 8}}), 2, {.padding = 1}).to_vector<float>() == Floats{1, 2});
  CHECK(
      avg_pool2d(image({{4, 8}}), 2, {.padding = 1, .counts_padding = false}).to_vector<float>() ==
      Floats{4, 8});
  const Tensor images = randn({2, 5, 6, 6}, f64);
  const Tensor expected = mean(reshape(images, {2, 5, 3, 2, 3, 2}), {3, 5});
  CHECK(max(abs(avg_pool2d(images, 2) - expected)).item<double>() < 1e-14);
}

TEST_CASE("pooling refuses what does not fit", "[eager][pool]") {
  const Tensor x = zeros({1, 2, 4, 4});
  CHECK_THROWS_WITH(max_pool2d(x[0], 2), Catch::Contains("four axes [n, c, h, w]"));
  CHECK_THROWS_WITH(max_pool2d(x, 5), Catch::Contains("images of at least 5 by 5"));
  CHECK_THROWS_WITH(max_pool2d(x, 2, {.padding = 2}),
                    Catch::StartsWith("max_pool2d: padding [2, 2] of windows [2, 2]"));
  CHECK_THROWS_WITH(avg_pool2d(x, 2, {.padding = 2}), Catch::Contains("at most half the window"));
  CHECK_THROWS_WITH(max_pool2d(x, 2, {.stride = 0}),
                    Catch::StartsWith("max_pool2d: stride [0, 0]"));
  CHECK_THROWS_WITH(avg_pool2d(x.to(i32), 2), Catch::StartsWith("avg_pool2d: not defined for"));
}
