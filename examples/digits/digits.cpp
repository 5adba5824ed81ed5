// Trains a small network on 1,797 handwritten digits, first eagerly, then compiled, and compares.
//
// The network is a plain struct, the step is ordinary code. The compiled run differs in one word,
// compile(): forward, backward and the optimizer's update become a few kernels. Both runs start
// from the same seed, so at the end all parameters must agree, not roughly but bit for bit.

#include "examples/comparison.h"
#include "examples/digits/data.h"
#include "examples/digits/model.h"
#include "examples/options.h"
#include <nitinol/nitinol.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <span>
#include <string>
#include <vector>

namespace {

namespace dist = nitinol::dist;
namespace nn = nitinol::nn;
using nitinol::Tensor;

struct Options {
  bool eager_only = false;
  bool explains = false;
  bool is_parallel = false;
  int epochs = 40;
  int64_t batch = 32;
  double rate = 3e-3;
  int threads = 1;
  uint64_t seed = 0;
  std::string model = "mlp";
  std::string data, json, save, log;
  examples::Share share = {};
};

/// Images and labels as tensors.
struct Data {
  Tensor images, labels;
  explicit Data(const digits::Rows& rows)
      : images(nitinol::from_span(std::span<const float>(rows.images),
                                  {rows.count(), digits::pixels})),
        labels(nitinol::from_span(std::span<const int64_t>(rows.labels), {rows.count()})) {}
};

template <class Model>
double accuracy_of(const Model& model, const Data& data) {
  const nitinol::NoGradients scope;
  const Tensor is_right = argmax(model(data.images), -1) == data.labels;
  return mean(is_right.to(nitinol::f32)).template item<double>();
}

/// One run, and what came of it.
struct Outcome {
  examples::Run run;
  std::string picture;
  double accuracy = 0;
  nitinol::Explanation explanation = {};
};

template <class Model>
Outcome train(bool is_compiled, const Data& data, const Data& held_out, const Options& options) {
  const examples::Share& share = options.share;
  nn::DataLoader loader({data.images, data.labels},
                        {.batch = share.batch,
                         .drops_last = true,
                         .seed = options.seed,
                         .shard = {.number = share.rank, .of = share.ranks}});
  const int64_t steps = options.epochs * loader.size();
  nitinol::manual_seed(options.seed);
  examples::Meter meter(steps);
  const Model model;
  const std::vector<nitinol::Variable> parameters = nn::parameters(model);
  const nn::Adam optimizer(parameters);
  const auto step = [&](const Tensor& images, const Tensor& labels) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(model(images), labels);
    loss.backward();
    if (options.is_parallel) nn::average_gradients(parameters);
    optimizer.step();
    return stop_gradient(loss);
  };
  const auto compiled = nitinol::compile(step, {.name = "train_step"});

  const nn::Schedule rate = nn::cosine_decay(options.rate, steps);
  const std::string name = is_compiled ? "compiled" : "eager";
  examples::Losses losses(options.log, name);
  nn::Progress progress({.name = name, .steps = steps, .items = options.batch, .unit = "images"});
  int64_t done = 0;
  for (int epoch = 0; epoch < options.epochs; ++epoch) {
    for (const auto& batch : loader) {
      const double now = rate(done++);
      optimizer.set_rate(now);
      const Tensor own = is_compiled ? meter.time(compiled, batch[0], batch[1])
                                     : meter.time(step, batch[0], batch[1]);
      const Tensor loss = options.is_parallel ? dist::all_reduce(own, dist::Reduce::mean) : own;
      losses.add(loss, now);
      progress.step(progress.is_due() ? fmt::format("loss {:.4f}", loss.item<float>()) : "");
    }
  }
  Outcome outcome = {.run = meter.finish(model, optimizer),
                     .picture = losses.picture(),
                     .accuracy = accuracy_of(model, held_out),
                     .explanation = compiled.explain()};
  if (options.is_parallel)
    outcome.picture +=
        fmt::format("ranks: {}, the last loss: {:.7f}\n", share.ranks, losses.last().item<float>());
  outcome.run.compile_s = examples::compile_seconds(outcome.explanation);
  if (!options.save.empty() && share.rank == 0) nn::save(options.save, model);
  return outcome;
}

/// Returns false if eager and compiled disagree.
template <class Model>
bool demo(const Options& options, const digits::Split& split) {
  const Data data(split.train), held_out(split.test);
  fmt::print("{} images to train on, {} held out; batches of {}, {} thread{}\n\n{}\n",
             split.train.count(), split.test.count(), options.batch, options.threads,
             options.threads == 1 ? "" : "s", nn::to_string(Model()));
  nlohmann::json report;
  bool is_same = true;
  const Outcome eager = train<Model>(false, data, held_out, options);
  std::string picture = eager.picture;
  if (options.eager_only) {
    report["eager"] = examples::to_json(eager.run);
  } else {
    const Outcome compiled = train<Model>(true, data, held_out, options);
    picture = compiled.picture;
    std::string explained = to_string(compiled.explanation);
    if (!options.explains) explained.resize(explained.find("\n      1. ") + 1);  // without steps
    fmt::print("\n{}", explained);
    examples::print_comparison(eager.run, compiled.run);
    is_same = examples::same_bits(eager.run, compiled.run);
    report = examples::to_json(eager.run, compiled.run);
    report["explain"] = nlohmann::json::parse(compiled.explanation.to_json());
  }
  fmt::print("accuracy: {:.3f} (of {} images held out)\n", eager.accuracy, split.test.count());
  fmt::print("\n{}", picture);
  report.update({{"model", options.model},
                 {"epochs", options.epochs},
                 {"batch", options.batch},
                 {"threads", options.threads},
                 {"seed", options.seed},
                 {"accuracy", eager.accuracy}});
  if (!options.json.empty()) std::ofstream(options.json) << report.dump(2) << '\n';
  return is_same;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CLI::App app("Trains a small network on handwritten digits, eagerly and compiled.");
    app.add_flag("--eager", options.eager_only, "train eagerly only, to look around in a debugger");
    examples::add_data_parallel(app, options.is_parallel);
    app.add_flag("--explain", options.explains, "say what the compiled step consists of");
    app.option_defaults()->always_capture_default();
    app.add_option("--model", options.model, "the network")->check(CLI::IsMember({"mlp", "cnn"}));
    app.add_option("--epochs", options.epochs, "passes over the data")->check(examples::positive());
    app.add_option("--batch", options.batch, "images in a batch")->check(examples::positive());
    app.add_option("--rate", options.rate, "the first learning rate")->check(examples::positive());
    app.add_option("--threads", options.threads, "threads to compute with")
        ->check(examples::positive());
    app.add_option("--seed", options.seed, "start of all random numbers");
    app.add_option("--data", options.data, "digits.csv, if it is elsewhere");
    app.add_option("--json", options.json, "write all figures to this file");
    app.add_option("--save", options.save, "write the model to this file");
    app.get_formatter()->column_width(24);
    examples::add_log(app, options.log);
    examples::add_device(app);
    CLI11_PARSE(app, argc, argv);
    options.share = examples::Share::of(options.batch, options.is_parallel);
    nitinol::set_num_threads(options.threads);
    const digits::Split split =
        digits::read_csv(digits::find_data(options.data, argv[0], NITINOL_EXAMPLE_DIR));
    const bool is_same = options.model == "cnn" ? demo<digits::Cnn>(options, split)
                                                : demo<digits::Mlp>(options, split);
    return is_same ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "digits: %s\n", error.what());
    return 2;
  }
}
