// fit() and metrics: what they compute, that steps are compiled, and that training goes on from a
// checkpoint with the bits it would have had.
#include "nn/fit.h"

#include "core/error.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/optimizers.h"
#include "nn/sequential.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

namespace nitinol::fit_test {
namespace {

namespace fs = std::filesystem;

double number(const Tensor& x) {
  return x.item<double>();
}

TEST_CASE("metrics of small data, computed by hand", "[nn][fit]") {
  const Tensor scores =
      tensor({{1.0, 3.0, 2.0}, {5.0, 4.0, 0.0}, {0.0, 1.0, 2.0}, {1.0, 0.0, 2.0}});
  const Tensor classes = tensor({1, 1, 2, 1});
  CHECK(number(nn::accuracy()(scores, classes)) == 0.5);
  CHECK(number(nn::top_k(1)(scores, classes)) == 0.5);
  CHECK(number(nn::top_k(2)(scores, classes)) == 0.75);
  CHECK(number(nn::top_k(3)(scores, classes)) == 1);
  // Of several places a sample has the mean.
  CHECK(number(nn::accuracy()(stack({scores, scores}), stack({classes, classes}))) == 0.5);
  CHECK(number(nn::mean_absolute_error()(tensor({{1.0, 2.0}, {3.0, 4.0}}),
                                         tensor({{1.0, 1.0}, {0.0, 4.0}}))) == 1);
  // Pairs of one of each: (0.8, 0.8) half, (0.8, 0.1) right, (0.3, 0.8) wrong, (0.3, 0.1) right.
  const Tensor targets = tensor({1, 1, 0, 0});
  CHECK(number(nn::area_under_curve()(tensor({0.8, 0.3, 0.8, 0.1}), targets)) == 0.625);
  CHECK(number(nn::area_under_curve()(tensor({{0.9}, {0.8}, {0.2}, {0.1}}), targets)) == 1);
  CHECK(number(nn::area_under_curve()(tensor({1.0, 1.0, 1.0, 1.0}), targets)) == 0.5);
  CHECK(std::isnan(number(nn::area_under_curve()(tensor({0.1, 0.2}), tensor({1, 1})))));

  CHECK_THROWS_AS(nn::top_k(0), Error);
  CHECK_THROWS_AS(nn::top_k(4)(scores, classes), Error);
  CHECK_THROWS_AS(nn::accuracy()(scores, scores), Error);
  CHECK_THROWS_AS(nn::accuracy()(scores, tensor({1, 2})), Error);
  CHECK_THROWS_AS(nn::mean_absolute_error()(scores, classes), Error);
  CHECK_THROWS_AS(nn::area_under_curve()(scores, classes), Error);
}

struct Data {
  Tensor x = randn({70, 4}, f32, Generator(1));
  Tensor y = cast(sum(x * tensor({1.0, -2.0, 0.5, 1.5}), {-1}) > 0, i64);
  [[nodiscard]] nn::DataLoader loader(const nn::DataLoaderOptions& options = {.batch = 16,
                                                                              .seed = 3}) const {
    return nn::DataLoader({x, y}, options);
  }
};

struct Net {
  nn::Linear hidden = nn::linear(4, 16);
  nn::BatchNorm norm = nn::batch_norm(16);
  nn::Dropout drop = nn::dropout(0.25);
  nn::Linear out = nn::linear(16, 2);
  Tensor operator()(const Tensor& x) const { return out(drop(relu(norm(hidden(x))))); }
};

Tensor loss_of(const Tensor& out, const Tensor& y) {
  return nn::cross_entropy(out, y);
}

TEST_CASE("fit() does what the loop does that one writes oneself", "[nn][fit]") {
  const Data data;
  manual_seed(5);
  const Net by_hand;
  std::vector<double> losses;
  {
    const nn::Adam optimizer(nn::parameters(by_hand), {.rate = 0.01});
    nn::DataLoader loader = data.loader();
    for (int epoch = 0; epoch < 3; ++epoch) {
      double total = 0, samples = 0;
      for (const auto& [x, y] : loader) {
        optimizer.zero_grad();
        const Tensor loss = loss_of(by_hand(x), y);
        loss.backward();
        optimizer.step();
        total += loss.item<double>() * static_cast<double>(x.shape()[0]);
        samples += static_cast<double>(x.shape()[0]);
      }
      losses.push_back(total / samples);
    }
  }
  for (const bool is_compiled : {true, false}) {
    CAPTURE(is_compiled);
    manual_seed(5);
    const Net net;
    const nn::Adam optimizer(nn::parameters(net), {.rate = 0.01});
    nn::DataLoader loader = data.loader(), held_out = data.loader({.is_shuffled = false});
    int64_t logged = 0;
    Explanation explained;
    const nn::History history =
        nn::fit(net, loss_of, optimizer, loader,
                {.epochs = 3,
                 .validation = &held_out,
                 .metrics = {nn::accuracy()},
                 .after_epoch = [&](const nn::Epoch& e) { logged += e.number; },
                 .explain = [&](const Explanation& e) { explained = e; },
                 .is_compiled = is_compiled});
    REQUIRE(history.size() == 3);
    CHECK(logged == 6);
    if (is_compiled) {
      REQUIRE(explained.signatures.size() == 2);  // of 16 rows, and of the last 6
      CHECK(explained.plan_calls > 0);
      for (const SignatureReport& one : explained.signatures) CHECK(one.tier == Tier::traced);
    }
    for (std::size_t i = 0; i < 3; ++i)
      CHECK(history[i].value("loss") == Approx(losses[i]).epsilon(1e-12));
    const std::vector<Variable> got = nn::parameters(net), expected = nn::parameters(by_hand);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i].get(), expected[i].get()));
    nn::eval(net);
    const Tensor out = net(data.x);
    CHECK(history[2].value("validation loss") ==
          Approx(number(cast(loss_of(out, data.y), f64))).epsilon(1e-6));
    CHECK(history[2].value("validation accuracy") == number(nn::accuracy()(out, data.y)));
    CHECK(history[2].value("accuracy") > 0.5);
    CHECK(to_string(history[0]).starts_with("epoch 1: loss "));
    CHECK_THROWS_AS(history[0].value("precision"), Error);
  }
}

/// Parameters, buffers and the state of the optimizer after training, which is broken off after
/// some steps and goes on from its checkpoint as often as is said.
struct Trained {
  std::vector<Tensor> state;
  nn::History history;
};

struct Interrupt : std::runtime_error {
  Interrupt() : std::runtime_error("the power is gone") {}
};

Trained trained(const std::vector<int>& stops, nn::FitOptions options, int64_t workers = 0) {
  const Data data;
  const fs::path path = fs::temp_directory_path() / "nitinol_fit.safetensors";
  fs::remove(path);
  Trained result;
  if (!stops.empty()) options.checkpoint = path;
  for (std::size_t run = 0; run <= stops.size(); ++run) {
    manual_seed(run == 0 ? 5 : 77 + run);  // another process begins with other numbers
    const Net net;
    const nn::AdamW optimizer(nn::parameters(net), {.rate = 0.02});
    nn::DataLoader loader = data.loader({.batch = 16, .seed = 3, .workers = workers});
    nn::DataLoader held_out = data.loader({.batch = 70});
    options.validation = &held_out;
    int steps = 0;
    const auto loss = [&](const Tensor& out, const Tensor& y) { return loss_of(out, y); };
    options.schedule = [&](int64_t step) {
      if (run < stops.size() && steps++ == stops[run]) throw Interrupt();
      return 0.02 / static_cast<double>(1 + step);
    };
    try {
      result.history = nn::fit(net, loss, optimizer, loader, options);
      REQUIRE(run == stops.size());
    } catch (const Interrupt&) {
      REQUIRE(run < stops.size());
      continue;
    }
    for (const nn::NamedVariable& one : nn::named_variables(net))
      result.state.push_back(one.variable);
    for (const nn::NamedVariable& one : nn::named_variables(optimizer))
      result.state.push_back(one.variable);
  }
  fs::remove(path);
  return result;
}

TEST_CASE("training that is broken off goes on with the bits it would have had", "[nn][fit]") {
  nn::FitOptions options = {.epochs = 4, .metrics = {nn::accuracy()}};
  options.early_stopping = {.monitor = "validation loss", .patience = 3};
  const Trained whole = trained({}, options);
  CHECK(whole.history.size() == 4);
  options.checkpoint_steps = 2;
  // An epoch has 5 steps: within the first, at its end, twice, and in the last.
  for (const std::vector<int>& stops : {std::vector{3}, {5}, {6}, {9, 4}, {2, 2, 2}, {19}}) {
    for (const int64_t workers : {0, 2}) {
      CAPTURE(stops, workers);
      const Trained again = trained(stops, options, workers);
      REQUIRE(again.state.size() == whole.state.size());
      for (std::size_t i = 0; i < whole.state.size(); ++i) {
        CAPTURE(i);
        CHECK(same_bits(again.state[i], whole.state[i]));
      }
      REQUIRE(again.history.size() == 4);
      for (std::size_t i = 0; i < 4; ++i) {
        CHECK(again.history[i].value("loss") == whole.history[i].value("loss"));
        CHECK(again.history[i].value("validation accuracy") ==
              whole.history[i].value("validation accuracy"));
      }
    }
  }
}

TEST_CASE("early stopping ends at the best epoch", "[nn][fit]") {
  const Data data;
  const nn::Sequential net(nn::linear(4, 2));
  const nn::Sgd optimizer(nn::parameters(net), {.rate = 0.5});
  nn::DataLoader loader = data.loader();
  std::vector<Tensor> weights;
  const std::vector<double> seen = {3, 2, 2.5, 1.95, 2.1, 2, 1, 0.5};
  // A metric that says what it is told to.
  const nn::Metric told = {.name = "told",
                           .part = [](const Tensor&, const Tensor& y) { return cast(y, f64); },
                           .whole = [&](const Tensor&) { return tensor(seen.at(weights.size())); }};
  const auto run = [&](const nn::EarlyStopping& stopping) {
    weights.clear();
    return nn::fit(net, loss_of, optimizer, loader,
                   {.epochs = 8,
                    .metrics = {told},
                    .early_stopping = stopping,
                    .after_epoch =
                        [&](const nn::Epoch&) { weights.push_back(nn::parameters(net)[0]); }})
        .size();
  };
  CHECK(run({.monitor = "told", .patience = 2}) == 6);
  CHECK(same_bits(nn::parameters(net)[0].get(), weights[3]));
  CHECK(run({.monitor = "told", .patience = 2, .threshold = 0.1}) == 4);
  CHECK(same_bits(nn::parameters(net)[0].get(), weights[1]));
  CHECK(run({.monitor = "told", .patience = 2, .restores_best = false}) == 6);
  CHECK(same_bits(nn::parameters(net)[0].get(), weights[5]));
  CHECK(run({.monitor = "told", .patience = 3, .is_maximizing = true}) == 4);
  CHECK(run({.monitor = "told", .patience = 9}) == 8);
}

TEST_CASE("fit() with autocast, a loss scale, a norm and a stream", "[nn][fit]") {
  const Data data;
  const nn::Dataset stream = nn::stream([&] {
    return [&, i = int64_t{0}]() mutable -> std::optional<nn::Batch> {
      if (i == 64) return std::nullopt;
      ++i;
      return nn::Batch{Tensor(data.x[i - 1]), Tensor(data.y[i - 1])};
    };
  });
  for (const DType dtype : {bf16, f16}) {
    manual_seed(2);
    const Net net;
    const nn::Adam optimizer(nn::parameters(net), {.rate = 0.03});
    nn::DataLoader loader(stream, {.batch = 16, .workers = 1});
    nn::FitOptions options = {.epochs = 8, .autocast = dtype, .largest_norm = 1};
    if (dtype == f16) options.loss_scale = nn::LossScale({.initial = 256});
    const nn::History history = nn::fit(net, loss_of, optimizer, loader, options);
    CHECK(history.back().value("loss") < 0.7 * history.front().value("loss"));
  }
}

TEST_CASE("fit(): what makes no sense", "[nn][fit]") {
  const Data data;
  const nn::Sequential net(nn::linear(4, 2));
  const nn::Sgd optimizer(nn::parameters(net));
  nn::DataLoader loader = data.loader();
  const auto refused = [&](const nn::FitOptions& options) {
    CHECK_THROWS_AS(nn::fit(net, loss_of, optimizer, loader, options), Error);
  };
  refused({.epochs = -1});
  refused({.checkpoint_steps = -1});
  refused({.early_stopping = nn::EarlyStopping{}});  // there is no validation
  refused({.early_stopping = nn::EarlyStopping{.monitor = "loss", .patience = 0}});
  refused({.early_stopping = nn::EarlyStopping{.monitor = "loss", .threshold = -1}});
  refused({.autocast = f64});
  nn::DataLoader single({data.x}, {});
  CHECK_THROWS_AS(nn::fit(net, loss_of, optimizer, single), Error);
  CHECK(nn::fit(net, loss_of, optimizer, loader, {.epochs = 0}).empty());

  // A checkpoint of other metrics, and one that is none.
  const fs::path path = fs::temp_directory_path() / "nitinol_fit_other.safetensors";
  fs::remove(path);
  CHECK(nn::fit(net, loss_of, optimizer, loader, {.epochs = 2, .checkpoint = path}).size() == 2);
  CHECK(nn::fit(net, loss_of, optimizer, loader, {.epochs = 2, .checkpoint = path}).size() == 2);
  CHECK(nn::fit(net, loss_of, optimizer, loader, {.epochs = 3, .checkpoint = path}).size() == 3);
  refused({.metrics = {nn::accuracy()}, .checkpoint = path});
  nn::save(path, net);
  refused({.checkpoint = path});
  fs::remove(path);
}

}  // namespace
}  // namespace nitinol::fit_test
