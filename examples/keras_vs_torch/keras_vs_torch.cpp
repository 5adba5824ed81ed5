// "Why is Torch 4 times slower than Keras?": the networks of that discussion, which compared a
// static graph with eager code on 1,000 samples, Adam at 1e-3 and 10 epochs of one full batch. Here
// both are the same code, with compile() around the step or without, and must end with the same
// bits.

#include "nitinol.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

namespace {

namespace nn = nitinol::nn;
using nitinol::Tensor;

struct Options {
  int epochs = 10;
  int threads = 0;
  uint64_t seed = 0;
  std::string json;
};

// ---- the networks

/// 100 -> 128 -> 10.
struct Small {
  nn::Linear hidden = nn::linear(100, 128);
  nn::Linear out = nn::linear(128, 10);
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return out(relu(hidden(x))); }
};

/// 100 -> 256 -> 128 -> 10 with batch norm and dropout.
struct Normalised {
  nn::Linear first = nn::linear(100, 256);
  nn::BatchNorm norm_1 = nn::batch_norm(256);
  nn::Dropout drop_1 = nn::dropout(0.5);
  nn::Linear second = nn::linear(256, 128);
  nn::BatchNorm norm_2 = nn::batch_norm(128);
  nn::Dropout drop_2 = nn::dropout(0.5);
  nn::Linear out = nn::linear(128, 10);
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor y = drop_1(relu(norm_1(first(x))));
    return out(drop_2(relu(norm_2(second(y)))));
  }
};

/// Scores from the last of 25 steps of 4 features each.
struct Recurrent {
  nn::Lstm lstm = nn::lstm(4, 64);
  nn::Linear out = nn::linear(64, 10);
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    const Tensor steps = permute(reshape(x, {x.shape()[0], 25, 4}), {1, 0, 2});
    return out(lstm(steps).last.hidden);
  }
};

// ---- training

struct Outcome {
  double first_s = 0;  ///< of the first epoch: with recording, or eager's warm-up
  double epoch_s = 0;  ///< the fastest one
  double compile_s = 0;
  float loss = 0;
  std::vector<Tensor> parameters;
};

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class Model>
Outcome train(bool is_compiled, const Options& options, const Tensor& x, const Tensor& y) {
  nitinol::manual_seed(options.seed);
  const Model model;
  const nn::Adam optimizer(nn::parameters(model), {.rate = 1e-3});
  const auto epoch = [&](const Tensor& in, const Tensor& wanted) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(model(in), wanted);
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  };
  const auto compiled = nitinol::compile(epoch, {.name = "epoch"});
  Outcome outcome;
  outcome.epoch_s = 1e9;
  for (int i = 0; i < options.epochs; ++i) {
    const double start = seconds();
    const Tensor loss = is_compiled ? compiled(x, y) : epoch(x, y);
    const double took = seconds() - start;
    if (i == 0) outcome.first_s = took;
    outcome.epoch_s = std::min(outcome.epoch_s, took);
    outcome.loss = loss.item<float>();
  }
  if (is_compiled) {
    const nitinol::Explanation explanation = compiled.explain();
    for (const auto& signature : explanation.signatures) outcome.compile_s += signature.compile_s;
  }
  for (const auto& parameter : nn::parameters(model)) outcome.parameters.push_back(parameter.get());
  return outcome;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(a[i].size()) * sizeof(float);
    if (std::memcmp(a[i].data<float>().data(), b[i].data<float>().data(), bytes) != 0) return false;
  }
  return a.size() == b.size();
}

template <class Model>
nlohmann::json row(const std::string& name, const Options& options, const Tensor& x,
                   const Tensor& y) {
  const Outcome eager = train<Model>(false, options, x, y);
  const Outcome compiled = train<Model>(true, options, x, y);
  const bool is_same = same_bits(eager.parameters, compiled.parameters);
  fmt::print("{:<26} {:>9.2f} ms {:>9.2f} ms {:>6.2f} {:>9.1f} ms {:>9.4f} {:>6}\n", name,
             eager.epoch_s * 1e3, compiled.epoch_s * 1e3, eager.epoch_s / compiled.epoch_s,
             compiled.compile_s * 1e3, compiled.loss, is_same ? "yes" : "NO");
  return {{"model", name},
          {"eager_s", eager.epoch_s},
          {"compiled_s", compiled.epoch_s},
          {"first_eager_s", eager.first_s},
          {"first_compiled_s", compiled.first_s},
          {"compile_s", compiled.compile_s},
          {"loss", compiled.loss},
          {"bit_identical", is_same}};
}

int run(const Options& options) {
  if (options.threads > 0) nitinol::set_num_threads(options.threads);
  nitinol::manual_seed(options.seed);
  const Tensor x = nitinol::randn({1000, 100});
  const Tensor y = nitinol::randint(0, 10, {1000});
  fmt::print("1,000 samples, Adam 1e-3, {} epochs of one full batch, {} threads\n\n",
             options.epochs, nitinol::num_threads());
  fmt::print("{:<26} {:>12} {:>12} {:>6} {:>12} {:>9} {:>6}\n", "model", "eager epoch", "compiled",
             "ratio", "to compile", "loss", "bits");
  const nlohmann::json rows = {row<Small>("MLP 100-128-10", options, x, y),
                               row<Normalised>("MLP 100-256-128-10 bn+drop", options, x, y),
                               row<Recurrent>("LSTM 25x4-64-10", options, x, y)};
  fmt::print("\nAn epoch is the fastest of {}; bits: the trained parameters agree bit for bit.\n",
             options.epochs);
  if (!options.json.empty()) std::ofstream(options.json) << rows.dump(2) << '\n';
  for (const auto& entry : rows) {
    if (!entry.at("bit_identical").get<bool>()) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("The networks of \"Why is Torch 4 times slower than Keras?\", eager and compiled.");
  app.add_option("--epochs", options.epochs, "how often to train on all samples")
      ->check(CLI::Range(4, 100000));
  app.add_option("--threads", options.threads, "0: all cores")->check(CLI::Range(0, 1024));
  app.add_option("--seed", options.seed, "of data and weights");
  app.add_option("--json", options.json, "write the table to a file");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(options);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
