// Plateau: when its rate falls.
#include "nn/plateau.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

#include <limits>
#include <vector>

using namespace nitinol;

namespace {

/// Rates after each of the metrics.
std::vector<double> after(nn::Plateau plateau, const std::vector<double>& metrics) {
  std::vector<double> rates;
  for (const double metric : metrics) {
    rates.push_back(plateau(metric));
    CHECK(plateau.rate() == rates.back());
  }
  return rates;
}

using Rates = std::vector<double>;

}  // namespace

TEST_CASE("Plateau lowers the rate when metrics get no better", "[nn]") {
  CHECK(after(nn::Plateau(1, {.factor = 0.5, .patience = 1}), {4, 3, 3, 3, 2, 2, 2, 2, 2}) ==
        Rates{1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125});
  // Better by too little is no better.
  CHECK(after(nn::Plateau(1, {.factor = 0.5, .patience = 0, .threshold = 0.1}), {10, 9.5, 8.9}) ==
        Rates{1, 0.5, 0.5});
  CHECK(after(nn::Plateau(1, {.factor = 0.5, .patience = 0, .threshold = 2, .is_absolute = true}),
              {10, 8.5, 7.9}) == Rates{1, 0.5, 0.5});
  // Upwards.
  CHECK(after(nn::Plateau(1, {.factor = 0.5, .patience = 0, .is_maximizing = true}),
              {1, 2, 1.5, 3}) == Rates{1, 1, 0.5, 0.5});
  CHECK(after(nn::Plateau(1, {.factor = 0.5,
                              .patience = 0,
                              .threshold = 1,
                              .is_absolute = true,
                              .is_maximizing = true}),
              {1, 1.5, 2.5}) == Rates{1, 0.5, 0.5});
  // Metrics that follow a change do not count for a while.
  CHECK(after(nn::Plateau(1, {.factor = 0.5, .patience = 0, .cooldown = 2}), {1, 1, 1, 1, 1}) ==
        Rates{1, 0.5, 0.5, 0.5, 0.25});
  CHECK(after(nn::Plateau(1, {.factor = 0.5, .patience = 0, .last = 0.4}), {1, 1, 1, 1}) ==
        Rates{1, 0.5, 0.4, 0.4});
  CHECK(after(nn::Plateau(0.1, {.patience = 0, .last = 0.4}), {1, 1}) == Rates{0.1, 0.1});
  const double no = std::numeric_limits<double>::quiet_NaN();
  CHECK(after(nn::Plateau(1, {.factor = 0.5, .patience = 1}), {1, no, no, 0.5}) ==
        Rates{1, 1, 0.5, 0.5});
}

TEST_CASE("rates of a Plateau reach the optimizer", "[nn]") {
  const Variable p = parameter(zeros({1}));
  const nn::Sgd optimizer({p}, {.rate = 1});
  nn::Plateau plateau(1, {.factor = 0.5, .patience = 0});
  for (int i = 0; i < 3; ++i) {
    p.set_grad(ones({1}));
    optimizer.step();
    optimizer.set_rate(plateau(1));
  }
  CHECK(p.item<float>() == -2.5F);
}
