// Losses: formulas in double precision, gradients, errors.
#include "nn/losses.h"

#include "core/backend.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/op_samples.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

// Not a constant: the default device is chosen after those are made.
Tensor logits() {
  return tensor({{1.5, -0.3, 0.2}, {-2.0, 0.7, 0.1}});
}

bool close(double x, double y) {
  return std::abs(x - y) < 1e-12;
}

}  // namespace

TEST_CASE("cross entropy of class numbers, probabilities, and smoothed ones", "[nn]") {
  const double a = std::log(std::exp(1.5) + std::exp(-0.3) + std::exp(0.2));
  const double b = std::log(std::exp(-2.0) + std::exp(0.7) + std::exp(0.1));
  const double expected = ((a - 0.2) + (b - -2.0)) / 2;
  CHECK(close(nn::cross_entropy(logits(), tensor({2, 0})).item<double>(), expected));
  const Tensor spread = tensor({{0.0, 0.0, 1.0}, {1.0, 0.0, 0.0}});
  CHECK(close(nn::cross_entropy(logits(), spread).item<double>(), expected));
  const double even = ((a - 1.4 / 3) + (b - -1.2 / 3)) / 2;
  CHECK(close(nn::cross_entropy(logits(), tensor({2, 0}), {.label_smoothing = 0.1}).item<double>(),
              0.9 * expected + 0.1 * even));
  CHECK_THROWS_WITH(nn::cross_entropy(logits(), tensor({1, 2, 0})),
                    Catch::Contains("class numbers of shape [2]"));
}

TEST_CASE("cross entropy refuses what is no class, eagerly and compiled", "[nn]") {
  const auto loss = [](const Tensor& x, const Tensor& t) { return nn::cross_entropy(x, t); };
  const auto compiled = compile(loss);
  const Tensor x = reshape(arange(24), {2, 4, 3}).to(f32);
  const Tensor good = tensor({{0, 1, 2, 0}, {1, 2, 0, 1}});
  for (int i = 0; i < 4; ++i) {
    CHECK(compiled(x, good).item<float>() == loss(x, good).item<float>());
  }
  CHECK(compiled.explain().plan_calls > 0);
  for (const int64_t wrong : {7, 3, -1, -3}) {
    const Tensor bad = tensor({{0, 1, 2, 0}, {1, 2, wrong, 1}});
    const std::string expected = test::error_of([&] { return loss(x, bad); });
    CAPTURE(expected);
    CHECK_THAT(expected, Catch::Contains(fmt::format("target {} at [1, 2] for 3 classes", wrong)));
    for (int i = 0; i < 2; ++i) CHECK(test::error_of([&] { return compiled(x, bad); }) == expected);
    CHECK(compiled(x, good).item<float>() == loss(x, good).item<float>());
  }
  CHECK_THROWS_WITH(grad([&](const Tensor& t) {
                      return loss(t, tensor({{7, 0, 0, 0}, {0, 0, 0, 0}}));
                    })(x),
                    Catch::Contains("target 7 at [0, 0]"));
}

TEST_CASE("cross entropy leaves out ignore_index", "[nn]") {
  const Tensor x = tensor({{1.5, -0.3, 0.2}, {-2.0, 0.7, 0.1}, {0.3, 0.4, -1.0}});
  const Tensor rest = concat({x[0], x[2]});
  const auto kept = [&](double smoothing) {
    return nn::cross_entropy(reshape(rest, {2, 3}), tensor({2, 0}), {.label_smoothing = smoothing})
        .item<double>();
  };
  for (const double smoothing : {0.0, 0.1}) {
    const nn::CrossEntropyOptions options = {.label_smoothing = smoothing};
    CHECK(
        close(nn::cross_entropy(x, tensor({2, -100, 0}), options).item<double>(), kept(smoothing)));
    CHECK(close(
        nn::cross_entropy(x, tensor({2, 1, 0}), {.label_smoothing = smoothing, .ignore_index = 1})
            .item<double>(),
        kept(smoothing)));
  }
  CHECK(std::isnan(nn::cross_entropy(x, full({3}, -100, i64)).item<double>()));
  const auto loss = [](const Tensor& t) { return nn::cross_entropy(t, tensor({2, -100, 0})); };
  const Tensor gradient = grad(loss)(x);
  CHECK(max(abs(gradient[1])).item<double>() == 0);
  CHECK_NOTHROW(check_gradients(loss, x, {.order = 2}));
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
      logits(), {.order = 2}));
  const Tensor y = tensor({{0.1, 0.9, 0.4}, {0.5, 0.2, 0.3}});
  const auto check = [](const auto& loss) { CHECK_NOTHROW(check_gradients(loss, logits())); };
  const Tensor sign = tensor({{1.0, -1.0, 1.0}, {-1.0, -1.0, 1.0}});
  check([&](const Tensor& x) { return nn::mse_loss(x, y); });
  check([&](const Tensor& x) { return nn::l1_loss(x, y); });
  check([&](const Tensor& x) { return nn::huber_loss(x, y, 0.6); });
  check([&](const Tensor& x) { return nn::smooth_l1_loss(x, y, 0.6); });
  check([&](const Tensor& x) { return nn::bce_with_logits(x, y); });
  check([&](const Tensor& x) {
    return nn::bce_with_logits(x, y,
                               {.weights = y + 1, .positive_weight = tensor({2.0, 3.0, 0.5})});
  });
  check([&](const Tensor& x) { return nn::bce_loss(sigmoid(x), y); });
  check([&](const Tensor& x) { return nn::kl_div(log_softmax(x), y); });
  check([&](const Tensor& x) { return nn::kl_div(x, x * y, true); });
  check([&](const Tensor& x) { return nn::poisson_nll_loss(x, y * 9, {.is_full = true}); });
  check([&](const Tensor& x) { return nn::gaussian_nll_loss(x, y, square(x) + 0.2); });
  check([&](const Tensor& x) { return sum(nn::cosine_similarity(x, y)); });
  check([&](const Tensor& x) {
    return nn::cosine_embedding_loss(x, y, tensor({1.0, -1.0}), -0.5);
  });
  check([&](const Tensor& x) { return nn::triplet_margin_loss(x, y, sign, {.margin = 3}); });
  check([&](const Tensor& x) { return nn::margin_ranking_loss(x, y, sign, 0.3); });
  check([&](const Tensor& x) { return nn::hinge_embedding_loss(x, sign, 1.3); });
  check([&](const Tensor& x) { return nn::soft_margin_loss(x, sign); });
  check([&](const Tensor& x) {
    return nn::nll_loss(log_softmax(x), tensor({2, 0}), {.weights = tensor({0.5, 1.0, 2.0})});
  });
  check([&](const Tensor& x) {
    return nn::cross_entropy(x, tensor({2, 0}),
                             {.label_smoothing = 0.2, .weights = tensor({0.5, 1.0, 2.0})});
  });
}

TEST_CASE("a loss is reduced as asked", "[nn]") {
  using enum nn::Reduction;
  const Tensor x = tensor({1.0, 4.0, 2.0}), y = tensor({0.5, 1.0, 2.0});
  CHECK(nn::mse_loss(x, y, none).to_vector<double>() == std::vector{0.25, 9.0, 0.0});
  CHECK(nn::mse_loss(x, y, sum).item<double>() == 9.25);
  CHECK(nn::mse_loss(x, y, mean).item<double>() == 9.25 / 3);
  // Of classes the mean is over what counts.
  const Tensor scores = concat({logits(), logits()}), labels = tensor({2, -100, 0, 1});
  const auto entropy = [&](nn::Reduction reduction) {
    return nn::cross_entropy(scores, labels, {.reduction = reduction});
  };
  const std::vector<double> each = entropy(none).to_vector<double>();
  REQUIRE(each.size() == 4);
  CHECK((each[1] == 0 && !std::signbit(each[1])));
  CHECK(close(entropy(sum).item<double>(), each[0] + each[2] + each[3]));
  CHECK(close(entropy(mean).item<double>(), (each[0] + each[2] + each[3]) / 3));
}

TEST_CASE("classes count by their weights", "[nn]") {
  const Tensor x = log_softmax(logits()), labels = tensor({2, 0});
  const std::optional<Tensor> weights = tensor({0.25, 1.0, 3.0});
  const double a = -x[0][2].item<double>(), b = -x[1][0].item<double>();
  const double expected = (3 * a + 0.25 * b) / 3.25;
  CHECK(close(nn::cross_entropy(logits(), labels, {.weights = weights}).item<double>(), expected));
  CHECK(close(nn::nll_loss(x, labels, {.weights = weights}).item<double>(), expected));
  CHECK(close(nn::nll_loss(x, labels).item<double>(), (a + b) / 2));
  // What is spread counts by the weights of the classes that it goes to.
  double spread = 0;
  for (int row : {0, 1}) {
    for (int k : {0, 1, 2}) spread -= x[row][k].item<double>() * (*weights)[k].item<double>() / 3;
  }
  const Tensor smoothed =
      nn::cross_entropy(logits(), labels, {.label_smoothing = 0.2, .weights = weights});
  CHECK(close(smoothed.item<double>(), 0.8 * expected + 0.2 * spread / 3.25));
  // Of a class that counts nothing, what is spread counts nevertheless.
  const auto only_last = [&](double smoothing, const Tensor& targets) {
    return nn::cross_entropy(logits(), targets,
                             {.label_smoothing = smoothing,
                              .weights = tensor({0.0, 0.0, 2.0}),
                              .reduction = nn::Reduction::none})
        .to_vector<double>();
  };
  const double c = -x[1][2].item<double>();
  CHECK(close(only_last(0.3, labels)[1], 0.3 * 2 * c / 3));
  CHECK(only_last(0.3, tensor({2, -100}))[1] == 0);
  // A class that counts nothing, of a target that is left out, and an impossible one.
  const Tensor impossible = tensor({{-INFINITY, 0.0, 0.0}, {0.0, 0.0, 0.0}});
  for (const auto& loss : {nn::cross_entropy(impossible, tensor({-100, 1})),
                           nn::nll_loss(log_softmax(impossible), tensor({-100, 1}))})
    CHECK(close(loss.item<double>(), std::log(3.0)));
  CHECK(std::isnan(nn::nll_loss(x, full({2}, -100, i64)).item<double>()));
  CHECK_THROWS_WITH(nn::nll_loss(x, labels, {.weights = tensor({1.0, 2.0})}),
                    Catch::Contains("nll_loss: weights") && Catch::Contains("each of 3 classes"));
  CHECK_THROWS_WITH(nn::nll_loss(x, tensor({2, 3})),
                    Catch::Contains("nll_loss: target 3 at [1] for 3 classes"));
}

TEST_CASE("what is and what is not count by weights of their own", "[nn]") {
  const Tensor x = tensor({0.5, -1.0}), t = tensor({0.25, 1.0});
  const auto expected = [&](double positive) {
    std::vector<double> losses;
    for (int i : {0, 1}) {
      const double p = 1 / (1 + std::exp(-x[i].item<double>())), w = t[i].item<double>();
      losses.push_back(-(positive * w * std::log(p) + (1 - w) * std::log(1 - p)));
    }
    return losses;
  };
  const auto check = [&](const Tensor& losses, const std::vector<double>& wanted) {
    for (std::size_t i = 0; i < 2; ++i) CHECK(close(losses.to_vector<double>()[i], wanted[i]));
  };
  const nn::BceOptions options = {.positive_weight = tensor(3.0), .reduction = nn::Reduction::none};
  check(nn::bce_with_logits(x, t, options), expected(3));
  check(nn::bce_loss(sigmoid(x), t, options), expected(3));
  const std::vector<double> plain = expected(1);
  check(
      nn::bce_with_logits(x, t, {.weights = tensor({2.0, 0.5}), .reduction = nn::Reduction::none}),
      {2 * plain[0], 0.5 * plain[1]});
}

TEST_CASE("losses at the ends of what they are for", "[nn]") {
  const Tensor ends = tensor({0.0, 1.0, 0.0, 1.0}), targets = tensor({0.0, 1.0, 1.0, 0.0});
  CHECK(nn::bce_loss(ends, targets, {.reduction = nn::Reduction::none}).to_vector<double>() ==
        std::vector{0.0, 0.0, 100.0, 100.0});
  CHECK(nn::kl_div(zeros({2}, f64), tensor({0.0, 1.0})).item<double>() == 0);
  CHECK(nn::cosine_similarity(zeros({1, 3}), ones({1, 3})).item<float>() == 0);
  const auto cosine = [](const Tensor& x) {
    return sum(nn::cosine_similarity(x, ones({1, 3}, x.dtype())));
  };
  // A norm of zeros is a constant, eps: as PyTorch's.
  for (const double slope : grad(cosine)(zeros({1, 3}, f64)).to_vector<double>())
    CHECK(slope == Approx(1 / std::sqrt(3.0) / 1e-8));
  CHECK(nn::gaussian_nll_loss(ones({2}), ones({2}), zeros({2}), {.eps = 1}).item<float>() == 0);
}

TEST_CASE("cross_entropy blames no target when memory runs out", "[nn][host][no-isa]") {
  constexpr int64_t n = 1 << 20;
  const Tensor x = ones({n, 1}), classes = zeros({n}, i64);
  Backend& device = backend(Device{});
  int failures = 0;
  for (int64_t more = 1; more < 64; ++more) {
    reset_peak_memory();
    device.set_memory_budget(memory_statistics().in_use + static_cast<std::size_t>(more * n));
    try {
      (void)nn::cross_entropy(x, classes);
    } catch (const Error& error) {
      ++failures;
      CHECK_THAT(error.what(), Catch::Contains("budget") && !Catch::Contains("target"));
    }
    device.set_memory_budget(0);
  }
  CHECK(failures > 10);
  CHECK(failures < 63);
}

TEST_CASE("cross entropy of targets that are all left out has gradients of 0", "[nn]") {
  const Variable logits = parameter(randn({3, 4}));
  const auto loss = [&] { return nn::cross_entropy(logits, full({3}, -100)); };
  const auto step = compile(
      [&] {
        logits.clear_grad();
        loss().backward();
        return logits.grad();
      },
      {.check = Check::never});
  CHECK(std::isnan(loss().item<float>()));
  for (int i = 0; i < 4; ++i) CHECK(same_bits(abs(step()), zeros({3, 4})));
  CHECK(step.explain().plan_calls > 0);
}

TEST_CASE("cross entropy takes no notice of classes that are impossible", "[nn]") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const Tensor x = tensor({{1.0F, -inf, 1.0F}, {-inf, 0.0F, -inf}}), y = tensor({2, 1});
  const auto loss = [&](const Tensor& logits) { return nn::cross_entropy(logits, y); };
  CHECK(loss(x).item<float>() == Approx(std::log(2.0) / 2));
  CHECK(grad(loss)(x).to_vector<float>() == std::vector<float>{0.25F, 0, -0.25F, 0, 0, 0});
}

TEST_CASE("cross entropy is differentiated twice, forward and in compiled functions", "[nn]") {
  const Tensor x = test::random_values(f64, {3, 4}, 1),
               direction = test::random_values(f64, {3, 4}, 2);
  const Tensor y = tensor({2, -100, 0});
  for (const double smoothing : {0.0, 0.1}) {
    const auto loss = [=](const Tensor& logits) {
      return nn::cross_entropy(logits, y, {.label_smoothing = smoothing});
    };
    const auto plain = [=](const Tensor& logits) {
      const Tensor wanted = one_hot(tensor({2, 0, 0}), 4, f64) * (1 - smoothing) + smoothing / 4;
      return -sum(tensor({{1.0}, {0.0}, {1.0}}) * wanted * log_softmax(logits)) / 2;
    };
    const auto is_near = [](const Tensor& a, const Tensor& b) {
      return allclose(a, b, 1e-12, 1e-12).item<bool>();
    };
    CHECK(is_near(loss(x), plain(x)));
    CHECK(is_near(grad(loss)(x), grad(plain)(x)));
    CHECK(is_near(jvp(loss, x, direction).second, jvp(plain, x, direction).second));
    const auto along = [&](const auto& f) {
      return grad([&](const Tensor& logits) { return sum(grad(f)(logits) * direction); })(x);
    };
    CHECK(is_near(along(loss), along(plain)));
    const auto compiled =
        compile([=](const Tensor& logits) { return value_and_grad(loss)(logits); });
    for (int call = 0; call < 3; ++call) {
      const auto [value, slope] = compiled(x);
      CHECK(same_bits(value, loss(x)));
      CHECK(same_bits(slope, grad(loss)(x)));
    }
    // Compiled by itself, and differentiated from outside.
    const auto inner = compile(loss);
    for (int call = 0; call < 4; ++call) CHECK(same_bits(grad(inner)(x), grad(loss)(x)));
  }
}
