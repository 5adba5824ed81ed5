// ctc_loss against the sum over all paths, its gradients, what has no path, errors.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

/// Repetitions dropped, then blanks.
std::vector<int64_t> labels_of_path(const std::vector<int64_t>& path, int64_t blank) {
  std::vector<int64_t> labels;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != blank && (i == 0 || path[i] != path[i - 1])) labels.push_back(path[i]);
  }
  return labels;
}

/// -log of the probability of all paths of so many steps that give the labels, of entry n.
double by_all_paths(const Tensor& logs, int64_t n, int64_t steps,
                    const std::vector<int64_t>& labels, int64_t blank) {
  const int64_t classes = logs.shape()[2];
  double total = 0;
  std::vector<int64_t> path(static_cast<std::size_t>(steps), 0);
  const auto number_of_paths = static_cast<int64_t>(std::pow(classes, steps));
  for (int64_t number = 0; number < number_of_paths; ++number) {
    double log = 0;
    int64_t rest = number;
    for (int64_t t = 0; t < steps; ++t, rest /= classes) {
      path[static_cast<std::size_t>(t)] = rest % classes;
      log += logs[t][n][rest % classes].item<double>();
    }
    if (labels_of_path(path, blank) == labels) total += std::exp(log);
  }
  return -std::log(total);
}

Tensor scores(int64_t steps, int64_t batch, int64_t classes) {
  return log_softmax(
      sin(reshape(arange(steps * batch * classes).to(f64) * 1.7, {steps, batch, classes})));
}

}  // namespace

TEST_CASE("ctc_loss sums over all paths", "[nn]") {
  const Tensor logs = scores(5, 4, 3);
  const std::vector<std::vector<int64_t>> labels = {{1, 2}, {2}, {}, {1, 1}};
  const Tensor padded = tensor({{1, 2, 0}, {2, 0, 0}, {-7, 9, 1}, {1, 1, 2}});
  const Tensor steps = tensor({5, 3, 4, 4}), lengths = tensor({2, 1, 0, 2});
  const Tensor losses =
      nn::ctc_loss(logs, padded, steps, lengths, {.reduction = nn::Reduction::none});
  double sum = 0, mean = 0;
  for (int64_t n = 0; n < 4; ++n) {
    const auto& wanted = labels[static_cast<std::size_t>(n)];
    const double expected = by_all_paths(logs, n, steps[n].item<int64_t>(), wanted, 0);
    CAPTURE(n);
    CHECK(losses[n].item<double>() == Approx(expected).epsilon(1e-12));
    sum += expected;
    mean += expected / std::max(1.0, static_cast<double>(wanted.size())) / 4;
  }
  CHECK(nn::ctc_loss(logs, padded, steps, lengths, {.reduction = nn::Reduction::sum})
            .item<double>() == Approx(sum).epsilon(1e-12));
  CHECK(nn::ctc_loss(logs, padded, steps, lengths).item<double>() == Approx(mean).epsilon(1e-12));
  // Another blank.
  const Tensor other =
      nn::ctc_loss(logs, tensor({{0, 1}, {1, 0}, {0, 0}, {1, 2}}), full({4}, 4),
                   tensor({2, 2, 2, 1}), {.blank = 2, .reduction = nn::Reduction::none});
  CHECK(other[0].item<double>() == Approx(by_all_paths(logs, 0, 4, {0, 1}, 2)).epsilon(1e-12));
  CHECK(other[2].item<double>() == Approx(by_all_paths(logs, 2, 4, {0, 0}, 2)).epsilon(1e-12));
}

TEST_CASE("ctc_loss of what no path gives", "[nn]") {
  // Of two steps, two equal labels leave no room for the blank between them.
  const Tensor logs = scores(2, 2, 3), labels = tensor({{1, 1}, {1, 2}});
  const Tensor steps = tensor({2, 2}), lengths = tensor({2, 2});
  const auto loss = [&](bool zeroes) {
    return [=](const Tensor& x) {
      return nn::ctc_loss(x, labels, steps, lengths,
                          {.zeroes_infinity = zeroes, .reduction = nn::Reduction::none});
    };
  };
  CHECK(loss(false)(logs)[0].item<double>() == std::numeric_limits<double>::infinity());
  CHECK(loss(true)(logs)[0].item<double>() == 0);
  const Tensor gradient = grad([&](const Tensor& x) { return sum(loss(true)(x)); })(logs);
  CHECK(all(isfinite(gradient)).item<bool>());
  for (const int64_t t : {0, 1}) CHECK(max(abs(gradient[t][0])).item<double>() == 0);
  // Without steps there is the empty path; without labels, blanks alone.
  const Tensor none = nn::ctc_loss(logs, zeros({2, 0}, i64), tensor({0, 2}), tensor({0, 0}),
                                   {.reduction = nn::Reduction::none});
  CHECK(none[0].item<double>() == 0);
  CHECK(none[1].item<double>() == Approx(by_all_paths(logs, 1, 2, {}, 0)).epsilon(1e-12));
}

TEST_CASE("ctc_loss has gradients, and is compiled for all lengths", "[nn][jit]") {
  const Tensor logs = scores(6, 2, 4), labels = tensor({{1, 3, 3}, {2, 1, 2}});
  const auto loss = [](const Tensor& x, const Tensor& l, const Tensor& steps,
                       const Tensor& lengths) {
    return nn::ctc_loss(log_softmax(x), l, steps, lengths);
  };
  const Tensor steps = tensor({6, 5}), lengths = tensor({3, 2});
  CHECK_NOTHROW(
      check_gradients([&](const Tensor& x) { return loss(x, labels, steps, lengths); }, logs));
  const auto step = [loss](const Tensor& x, const Tensor& l, const Tensor& s, const Tensor& n) {
    return grad([&](const Tensor& y) { return loss(y, l, s, n); })(x);
  };
  const auto compiled = compile(step, {.check = Check::never});
  for (int call = 0; call < 5; ++call) {
    const Tensor some = tensor({6 - call % 2, 4}), few = tensor({call % 3, 1});
    CHECK(same_bits(compiled(logs, labels, some, few), step(logs, labels, some, few)));
  }
  CHECK(compiled.explain().plan_calls > 0);
  CHECK(compiled.explain().signatures.size() == 1);
  const std::string error = test::error_of([&] {
    return step(logs, labels, tensor({7, 1}), lengths);
  });
  CHECK_THAT(error, Catch::Contains("ctc_loss: step_lengths") && Catch::Contains("got 1 to 7"));
  const std::string later = test::error_of([&] {
    return compiled(logs, labels, tensor({7, 1}), lengths);
  });
  CHECK_THAT(later, Catch::Contains("ctc_loss: step_lengths"));
  if (default_device() == Device{}) CHECK(later == error);
}

TEST_CASE("ctc_loss refuses what does not fit", "[nn][errors]") {
  const Tensor logs = scores(3, 2, 4), labels = tensor({{1}, {2}}), ones = tensor({1, 1});
  const auto error = [&](const Tensor& x, const Tensor& l, const Tensor& s, int64_t blank = 0) {
    return test::error_of([&] { return nn::ctc_loss(x, l, s, ones, {.blank = blank}); });
  };
  CHECK_THAT(error(logs[0], labels, ones), Catch::Contains("[steps, batch, classes]"));
  CHECK_THAT(error(logs, labels[0], ones), Catch::Contains("[batch, most labels]"));
  CHECK_THAT(error(logs, labels.to(f32), ones), Catch::Contains("labels float32[2, 1]"));
  CHECK_THAT(error(logs, labels, tensor({1})), Catch::Contains("integers of shape [2]"));
  CHECK_THAT(error(logs, labels, ones.to(f32)), Catch::Contains("step_lengths float32[2]"));
  CHECK_THAT(error(logs, labels, ones, 4), Catch::Contains("blank 4"));
  CHECK_THAT(error(logs, tensor({{1}, {9}}), ones), Catch::Contains("9"));
}
