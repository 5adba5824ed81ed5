// "Why is Torch 4 times slower than Keras?": the networks of that discussion, which compared a
// static graph with eager code on 1,000 samples, Adam at 1e-3 and 10 epochs of one full batch. Here
// both are the same code, with compile() around the step or without, and must end with the same
// bits.

#include "examples/comparison.h"
#include "examples/keras_vs_torch/models.h"
#include "examples/options.h"
#include <nitinol/nitinol.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

namespace {

namespace nn = nitinol::nn;
using nitinol::Tensor;

struct Options {
  int epochs = 10;
  int threads = 0;
  uint64_t seed = 0;
  std::string json, save;
};

template <class Model>
examples::Run train(bool is_compiled, const Options& options, const Tensor& x, const Tensor& y) {
  nitinol::manual_seed(options.seed);
  examples::Meter meter(options.epochs);
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
  for (int i = 0; i < options.epochs; ++i) {
    is_compiled ? meter.time(compiled, x, y) : meter.time(epoch, x, y);
  }
  examples::Run run = meter.finish(model, optimizer);
  run.compile_s = examples::compile_seconds(compiled.explain());
  if (!options.save.empty()) nn::save(fmt::format("{}.{}", options.save, Model::name), model);
  return run;
}

template <class Model>
nlohmann::json row(const std::string& name, const Options& options, const Tensor& x,
                   const Tensor& y) {
  const examples::Run eager = train<Model>(false, options, x, y);
  const examples::Run compiled = train<Model>(true, options, x, y);
  fmt::print("{:<26} {:>9} {:>9} {:>5.2f} {:>9} {:>9} {:>9} {:>7.4f} {:>5}\n", name,
             examples::duration(eager.fastest_s), examples::duration(compiled.fastest_s),
             eager.fastest_s / compiled.fastest_s, examples::megabytes(eager.peak_bytes),
             examples::megabytes(compiled.peak_bytes), examples::duration(compiled.compile_s),
             compiled.loss, examples::same_bits(eager, compiled) ? "yes" : "NO");
  nlohmann::json result = examples::to_json(eager, compiled);
  result["model"] = name;
  return result;
}

int run(const Options& options) {
  if (options.threads > 0) nitinol::set_num_threads(options.threads);
  nitinol::manual_seed(options.seed);
  const Tensor x = nitinol::randn({1000, 100});
  const Tensor y = nitinol::randint(0, 10, {1000});
  fmt::print("1,000 samples, Adam 1e-3, {} epochs of one full batch, {} threads\n\n",
             options.epochs, nitinol::num_threads());
  fmt::print("{:<26} {:^19} {:>5} {:^19}\n", "", "epoch", "", "peak memory");
  fmt::print("{:<26} {:>9} {:>9} {:>5} {:>9} {:>9} {:>9} {:>7} {:>5}\n", "model", "eager",
             "compiled", "ratio", "eager", "compiled", "compiling", "loss", "bits");
  const nlohmann::json rows = {
      row<keras_vs_torch::Small>("MLP 100-128-10", options, x, y),
      row<keras_vs_torch::Normalised>("MLP 100-256-128-10 bn+drop", options, x, y),
      row<keras_vs_torch::Recurrent>("LSTM 25x4-64-10", options, x, y)};
  fmt::print("\nAn epoch is the fastest of {}; bits: all that was trained agrees bit for bit.\n",
             options.epochs);
  if (!options.json.empty()) std::ofstream(options.json) << rows.dump(2) << '\n';
  for (const auto& entry : rows) {
    if (!entry.at("bit_identical").get<bool>()) return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CLI::App app(
        "The networks of \"Why is Torch 4 times slower than Keras?\", eager and compiled.");
    app.option_defaults()->always_capture_default();
    app.add_option("--epochs", options.epochs, "how often to train on all samples")
        ->check(CLI::Range(4, 100000));
    app.add_option("--threads", options.threads, "0: all cores")->check(CLI::Range(0, 1024));
    app.add_option("--seed", options.seed, "of data and weights");
    app.add_option("--json", options.json, "write all figures to this file");
    app.add_option("--save", options.save, "write the models to files that begin with this");
    examples::add_device(app);
    CLI11_PARSE(app, argc, argv);
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "keras_vs_torch: %s\n", error.what());
    return 2;
  }
}
