// Trains a small network on 1,797 handwritten digits, first eagerly, then compiled, and compares.
//
// The network is plain code: functions of tensors, parameters that live in Variables, gradients
// worked out by hand. The compiled run differs in one word, compile(): the same function, the whole
// training step with its update, becomes a few kernels. Both runs start from the same seed, so at
// the end all parameters must agree, not roughly but bit for bit.

#include "examples/digits/data.h"
#include "examples/digits/progress.h"
#include "nitinol.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace {

using nitinol::Scalar;
using nitinol::Shape;
using nitinol::Tensor;
using nitinol::Variable;

// ---- the model
// -----------------------------------------------------------------------------------

/// A trained tensor, and the running step that gives it momentum.
struct Parameter {
  Variable value, velocity;

  explicit Parameter(const Tensor& initial)
      : value(initial), velocity(nitinol::zeros_like(initial)) {}

  void update(const Tensor& gradient, const Scalar& rate) const {
    velocity = 0.9 * velocity - rate * gradient;
    value += velocity;
  }
};

/// 64 pixels -> `hidden` rectified units -> 10 scores.
struct Network {
  Parameter w1, b1, w2, b2;

  explicit Network(int64_t hidden)
      : w1(nitinol::randn({digits::pixels, hidden}) * std::sqrt(2.0 / digits::pixels)),
        b1(nitinol::zeros({hidden})),
        w2(nitinol::randn({hidden, digits::classes}) *
           std::sqrt(1.0 / static_cast<double>(hidden))),
        b2(nitinol::zeros({digits::classes})) {}

  [[nodiscard]] Tensor hidden(const Tensor& images) const {
    return relu(matmul(images, w1.value) + b1.value);
  }
  [[nodiscard]] Tensor scores(const Tensor& images) const {
    return matmul(hidden(images), w2.value) + b2.value;
  }
  [[nodiscard]] std::array<Variable, 8> state() const {
    return {w1.value,    b1.value,    w2.value,    b2.value,
            w1.velocity, b1.velocity, w2.velocity, b2.velocity};
  }
};

/// One step of gradient descent with momentum on one batch. Returns the loss before the step.
Tensor train_step(const Network& net, const Tensor& images, const Tensor& labels,
                  const Scalar& rate) {
  const auto batch = static_cast<double>(images.shape()[0]);

  const Tensor hidden = net.hidden(images);
  const Tensor log_probability = log_softmax(matmul(hidden, net.w2.value) + net.b2.value, -1);
  const Tensor target = one_hot(labels, digits::classes);
  const Tensor loss = -sum(target * log_probability) / batch;

  // The gradient of the cross entropy is softmax minus target; relu passes it on where it was
  // active.
  const Tensor d_scores = (exp(log_probability) - target) / batch;
  const Tensor d_hidden = where(hidden > 0, matmul(d_scores, transpose(net.w2.value)), 0);
  net.w2.update(matmul(transpose(hidden), d_scores), rate);
  net.b2.update(sum(d_scores, 0), rate);
  net.w1.update(matmul(transpose(images), d_hidden), rate);
  net.b1.update(sum(d_hidden, 0), rate);
  return loss;
}

/// The step as a function of the batch alone; it shares the parameters of `net`.
auto step_of(const Network& net) {
  return [net](const Tensor& images, const Tensor& labels, const Scalar& rate) {
    return train_step(net, images, labels, rate);
  };
}

// ---- training
// ------------------------------------------------------------------------------------

struct Options {
  bool eager_only = false;
  int epochs = 200;
  int64_t batch = 32;
  int threads = 1;
  uint64_t seed = 0;
  std::string data, json;
};

/// Images and labels as tensors.
struct Data {
  Tensor images, labels;
  explicit Data(const digits::Rows& rows)
      : images(reshape(nitinol::from_span(std::span<const float>(rows.images),
                                          Shape{rows.count() * digits::pixels}),
                       {rows.count(), digits::pixels})),
        labels(nitinol::from_span(std::span<const int64_t>(rows.labels), Shape{rows.count()})) {}
};

/// What one run leaves behind.
struct Run {
  Network network;
  double step_s = 0;                ///< median time of a step
  double total_s = 0;               ///< all steps, with recording and compiling
  std::vector<double> losses = {};  ///< mean of each epoch
  double accuracy = 0;
};

double accuracy_of(const Network& net, const Data& data) {
  const Tensor is_right = argmax(net.scores(data.images), -1) == data.labels;
  return mean(is_right.to(nitinol::f32)).item<double>();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The rows of `data` in a random order that depends on the epoch and the seed.
Data shuffled(const Data& data, uint64_t seed) {
  std::vector<int64_t> order(static_cast<std::size_t>(data.labels.size()));
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(seed);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  const Tensor rows = nitinol::from_span(std::span<const int64_t>(order), Shape{std::ssize(order)});
  Data result = data;
  result.images = take(data.images, rows);
  result.labels = take(data.labels, rows);
  return result;
}

/// Trains `network` with `step(images, labels, rate) -> loss`.
template <class Step>
Run train(const std::string& name, Network network, const Step& step, const Data& data,
          const Data& held_out, const Options& options) {
  using Clock = std::chrono::steady_clock;
  Run run{.network = std::move(network)};
  const digits::Progress progress(name, options.epochs);
  std::vector<double> times;
  const int64_t count = data.labels.size();
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    const Data order = shuffled(data, options.seed + static_cast<uint64_t>(epoch));
    const double rate = 0.1 * (1 - static_cast<double>(epoch) / options.epochs);
    double loss = 0;
    for (int64_t begin = 0; begin < count; begin += options.batch) {
      const int64_t end = std::min(begin + options.batch, count);
      const nitinol::Range rows{begin, end};
      const Clock::time_point start = Clock::now();
      const Tensor batch_loss =
          step(slice(order.images, 0, rows), slice(order.labels, 0, rows), rate);
      times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
      loss +=
          batch_loss.item<double>() * static_cast<double>(end - begin) / static_cast<double>(count);
    }
    run.losses.push_back(loss);
    run.accuracy = accuracy_of(run.network, held_out);
    progress.show(epoch + 1,
                  fmt::format("loss {:.4f}  held-out accuracy {:.3f}", loss, run.accuracy));
  }
  run.total_s = std::accumulate(times.begin(), times.end(), 0.0);
  run.step_s = median(std::move(times));
  return run;
}

// ---- the comparison
// ------------------------------------------------------------------------------

bool same_bits(const Network& a, const Network& b) {
  const std::array<Variable, 8> left = a.state(), right = b.state();
  for (std::size_t i = 0; i < left.size(); ++i) {
    const Tensor x = left[i].get(), y = right[i].get();
    const std::span<const float> p = x.data<float>(), q = y.data<float>();
    if (p.size() != q.size() || std::memcmp(p.data(), q.data(), p.size_bytes()) != 0) return false;
  }
  return true;
}

nlohmann::json to_json(const Run& run) {
  return {{"step_s", run.step_s},
          {"total_s", run.total_s},
          {"losses", run.losses},
          {"accuracy", run.accuracy}};
}

void print_times(const Run& eager, const Run& compiled) {
  fmt::print("\n{:<9} {:>8.1f} us a step, {:>6.3f} s in all\n", "eager", eager.step_s * 1e6,
             eager.total_s);
  fmt::print("{:<9} {:>8.1f} us a step, {:>6.3f} s in all, recording and compiling included\n",
             "compiled", compiled.step_s * 1e6, compiled.total_s);
  fmt::print("compiled is {:.2f} times as fast\n\n", eager.step_s / compiled.step_s);
}

/// Both runs start here, so that they draw the same numbers.
Network fresh_network(const Options& options) {
  constexpr int64_t hidden = 64;
  nitinol::manual_seed(options.seed);
  return Network(hidden);
}

/// Returns false if eager and compiled disagree.
bool demo(const Options& options, const digits::Split& split) {
  const Data data(split.train), held_out(split.test);
  fmt::print("{} images to train on, {} held out; batches of {}, {} thread{}\n\n",
             split.train.count(), split.test.count(), options.batch, options.threads,
             options.threads == 1 ? "" : "s");
  nlohmann::json report = {{"epochs", options.epochs},
                           {"batch", options.batch},
                           {"threads", options.threads},
                           {"seed", options.seed}};

  const Network first = fresh_network(options);
  const Run eager = train("eager", first, step_of(first), data, held_out, options);
  report["eager"] = to_json(eager);
  report["accuracy"] = eager.accuracy;

  bool is_same = true;
  if (!options.eager_only) {
    const Network second = fresh_network(options);
    const auto compiled_step = nitinol::compile(step_of(second), {.name = "train_step"});
    const Run compiled = train("compiled", second, compiled_step, data, held_out, options);
    is_same = same_bits(eager.network, compiled.network);
    print_times(eager, compiled);
    fmt::print("{}\n", to_string(compiled_step.explain()));
    report["compiled"] = to_json(compiled);
    report["ratio"] = eager.step_s / compiled.step_s;
    report["explain"] = nlohmann::json::parse(compiled_step.explain().to_json());
    report["accuracy"] = compiled.accuracy;
    report["bit_identical"] = is_same;
  }
  if (!options.json.empty()) std::ofstream(options.json) << report.dump(2) << '\n';
  fmt::print("accuracy: {:.2f}\n", report["accuracy"].get<double>());
  if (!options.eager_only) fmt::print("bit-identical: {}\n", is_same ? "yes" : "no");
  return is_same;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CLI::App app("Trains a small network on handwritten digits, eagerly and compiled.");
    app.add_flag("--eager", options.eager_only, "train eagerly only, to look around in a debugger");
    app.add_option("--epochs", options.epochs, "passes over the data")->check(CLI::PositiveNumber);
    app.add_option("--batch", options.batch, "images in a batch")->check(CLI::PositiveNumber);
    app.add_option("--threads", options.threads, "threads to compute with")
        ->check(CLI::PositiveNumber);
    app.add_option("--seed", options.seed, "start of all random numbers");
    app.add_option("--data", options.data, "digits.csv, if it is elsewhere");
    app.add_option("--json", options.json, "write all figures to this file");
    app.get_formatter()->column_width(24);
    app.option_defaults()->always_capture_default();
    CLI11_PARSE(app, argc, argv);
    nitinol::set_num_threads(options.threads);
    return demo(options, digits::read_csv(digits::find_data(options.data, argv[0]))) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 2;
  }
}
