// Losses: formulas in double precision, gradients, errors.
#include "nn/losses.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace nitinol;

namespace {

const Tensor logits = tensor({{1.5, -0.3, 0.2}, {-2.0, 0.7, 0.1}});

bool close(double x, double y) {
  return std::abs(x - y) < 1e-12;
}

}  // namespace

TEST_CASE("cross entropy of class numbers, probabilities, and smoothed ones", "[nn]") {
  const double a = std::log(std::exp(1.5) + std::exp(-0.3) + std::exp(0.2));
  const double b = std::log(std::exp(-2.0) + std::exp(0.7) + std::exp(0.1));
  const double expected = ((a - 0.2) + (b - -2.0)) / 2;
  CHECK(close(nn::cross_entropy(logits, tensor({2, 0})).item<double>(), expected));
  const Tensor spread = tensor({{0.0, 0.0, 1.0}, {1.0, 0.0, 0.0}});
  CHECK(close(nn::cross_entropy(logits, spread).item<double>(), expected));
  const double even = ((a - 1.4 / 3) + (b - -1.2 / 3)) / 2;
  CHECK(close(nn::cross_entropy(logits, tensor({2, 0}), {.label_smoothing = 0.1}).item<double>(),
              0.9 * expected + 0.1 * even));
  CHECK_THROWS_WITH(nn::cross_entropy(logits, tensor({1, 2, 0})),
                    Catch::Contains("class numbers of shape [2]"));
}

TEST_CASE("losses of real targets", "[nn]") {
  const Tensor x = tensor({1.0, 4.0});
  const Tensor y = tensor({0.5, 1.0});
  CHECK(close(nn::mse_loss(x, y).item<double>(), (0.25 + 9) / 2));
  CHECK(close(nn::l1_loss(x, y).item<double>(), 3.5 / 2));
  CHECK(close(nn::huber_loss(x, y).item<double>(), (0.125 + 2.5) / 2));
  const auto bce = [](double l, double t) {
    const double p = 1 / (1 + std::exp(-l));
    return -(t * std::log(p) + (1 - t) * std::log(1 - p));
  };
  CHECK(close(nn::bce_with_logits(x, y).item<double>(), (bce(1, 0.5) + bce(4, 1)) / 2));
  CHECK(nn::bce_with_logits(tensor({1000.0, -1000.0}), tensor({0.0, 1.0})).item<double>() == 1000);
  CHECK_THROWS_WITH(nn::mse_loss(x, tensor({{1.0, 2.0}})), Catch::Contains("one shape"));
}

TEST_CASE("losses have gradients that agree with central differences", "[nn]") {
  CHECK_NOTHROW(check_gradients(
      [](const Tensor& x) {
        return nn::cross_entropy(x, tensor({2, 0}));
      },
      logits, {.order = 2}));
  const Tensor y = tensor({{0.1, 0.9, 0.4}, {0.5, 0.2, 0.3}});
  for (const auto loss : {nn::mse_loss, nn::l1_loss, nn::bce_with_logits}) {
    CHECK_NOTHROW(check_gradients([&](const Tensor& x) { return loss(x, y); }, logits));
  }
  CHECK_NOTHROW(
      check_gradients([&](const Tensor& x) { return nn::huber_loss(x, y, 0.6); }, logits));
}
