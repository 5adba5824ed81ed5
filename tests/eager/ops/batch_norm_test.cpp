#include "eager/ops/batch_norm.h"

#include "eager/channels_last.h"
#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

using namespace nitinol;

namespace {

Tensor largest_difference(const Tensor& a, const Tensor& b) {
  return max(abs(a - b));
}

/// A number for each feature beside x.
Tensor spread(const Tensor& of_features, const Tensor& x) {
  Shape column = Dims::filled(x.rank() - 1, 1);
  column[0] = of_features.shape()[0];
  return reshape(of_features, column);
}

}  // namespace

TEST_CASE("batch_norm normalises each feature by the batch, or by what is given",
          "[eager][batch_norm]") {
  for (const Shape& shape : {Shape{9, 3}, Shape{4, 3, 5}, Shape{2, 3, 4, 5}}) {
    const Tensor x = randn(shape, f64) * 3.0 + 2.0;
    const BatchNorm options = {.weight = randn({3}, f64), .bias = randn({3}, f64), .eps = 0.01};
    Dims others = {0};
    for (int axis = 2; axis < x.rank(); ++axis) others.push_back(axis);
    const Tensor average = mean(x, others), variance = var(x, others);
    const Tensor expected =
        (x - spread(average, x)) * spread(options.weight / sqrt(variance + 0.01), x) +
        spread(options.bias, x);
    const BatchNormed got = batch_norm(x, options);
    CHECK(largest_difference(got.values, expected).item<double>() < 1e-12);
    CHECK(largest_difference(got.mean, average).item<double>() < 1e-12);
    CHECK(largest_difference(got.variance, variance).item<double>() < 1e-12);
    const Tensor again = batch_norm(x, average, variance, options);
    CHECK(largest_difference(again, expected).item<double>() < 1e-12);
    const Tensor bare = (x - spread(average, x)) / sqrt(spread(variance, x) + 0.01);
    const BatchNorm only_eps = {.weight = {}, .bias = {}, .eps = 0.01};
    CHECK(largest_difference(batch_norm(x, only_eps).values, bare).item<double>() < 1e-12);
  }
}

TEST_CASE("batches of several processes are normalised as one, by statistics that they share",
          "[eager][batch_norm]") {
  const Tensor x = randn({6, 3, 2}, f64), seed = randn({6, 3, 2}, f64);
  const BatchNorm options = {.weight = randn({3}, f64), .bias = randn({3}, f64)};
  const auto whole = [&](const Tensor& all) { return sum(batch_norm(all, options).values * seed); };
  const auto shared = [&](const Tensor& all) {
    const std::vector<Tensor> parts = split(all, 3), seeds = split(seed, 3);
    const auto over_both = [&](const auto& f) { return (f(parts[0]) + f(parts[1])) / 2.0; };
    const Tensor average = over_both([](const Tensor& part) { return mean(part, {0, 2}); });
    const Tensor variance = over_both([&](const Tensor& part) {
      return mean(square(part - spread(average, part)), {0, 2});
    });
    const auto loss = [&](std::size_t i) {
      return sum(batch_norm(parts[i], average, variance, options) * seeds[i]);
    };
    return loss(0) + loss(1);
  };
  CHECK(std::abs(whole(x).item<double>() - shared(x).item<double>()) < 1e-12);
  CHECK(largest_difference(grad(whole)(x), grad(shared)(x)).item<double>() < 1e-12);
}

TEST_CASE("normalised images lie channels last, with bits that no layout changes",
          "[eager][batch_norm][channels_last]") {
  const Tensor x = randn({2, 3, 4, 5});
  const Tensor last = channels_first(copy(channels_last(x)));
  const BatchNorm options = {.weight = ones({3}), .bias = zeros({3})};
  const Tensor values = batch_norm(x, options).values;
  CHECK(is_contiguous(Shape{2, 4, 5, 3}, channels_last(values).internals().strides));
  CHECK(same_bits(values, batch_norm(last, options).values));
}

TEST_CASE("batch_norm says what does not fit", "[eager][batch_norm]") {
  const BatchNorm options = {.weight = ones({3}), .bias = zeros({3})};
  CHECK_THROWS_WITH(
      batch_norm(ones({3}), options),
      Catch::Contains("batch_norm: the input is float32[3]") && Catch::Contains("got rank 1"));
  CHECK_THROWS_WITH(
      batch_norm(ones({2, 4}), options),
      Catch::Contains("float32[2, 4] with float32[3] for its features: expected [4]"));
  CHECK_THROWS_WITH(batch_norm(ones({2, 3}), {.weight = ones({3}), .bias = zeros({1})}),
                    Catch::Contains("expected [3], got [1]"));
}
