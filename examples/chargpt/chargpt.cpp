// Trains a small GPT, character by character, on this project's own documents, and lets it write.
//
// First it makes the same few steps eagerly and compiled, to compare times, memory and bits; then
// it trains, compiled, for a minute or two.

#include "examples/chargpt/model.h"
#include "examples/chargpt/text.h"
#include "examples/comparison.h"
#include "examples/options.h"
#include <nitinol/nitinol.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

namespace dist = nitinol::dist;
namespace nn = nitinol::nn;
using chargpt::Gpt;
using chargpt::Text;
using nitinol::Tensor;

struct Options {
  int64_t steps = 2400;
  int64_t compared = 20;
  int64_t batch = 16;
  double rate = 3e-3;
  chargpt::Sizes sizes = {};
  int threads = 0;
  uint64_t seed = 0;
  std::string prompt = "## ";
  int64_t length = 500;
  double temperature = 0.5;
  std::vector<std::filesystem::path> files;
  std::string json, save, log;
  bool is_parallel = false;
  examples::Share share = {};
};

/// A model, and how it was trained.
struct Trained {
  Gpt model;
  examples::Run run;
  std::string picture;
};

Trained train(const std::string& name, bool is_compiled, int64_t steps, const Text& text,
              const Options& options) {
  nitinol::manual_seed(options.seed);
  examples::Meter meter(steps);
  const Gpt model = gpt(options.sizes);
  const std::vector<nitinol::Variable> parameters = nn::parameters(model);
  const nn::AdamW optimizer(parameters, {.beta2 = 0.99, .weight_decay = 0.01});
  const auto step = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(model(x), y);
    loss.backward();
    if (options.is_parallel) nn::average_gradients(parameters);
    nn::clip_gradient_norm(parameters, 1);
    optimizer.step();
    return stop_gradient(loss);
  };
  const auto compiled = nitinol::compile(step, {.name = "train_step"});
  const nn::Schedule rate = nn::warm_up(50, nn::cosine_decay(options.rate, options.steps));
  examples::Losses losses(options.log, name);
  nn::Progress progress({.name = name,
                         .steps = steps,
                         .items = options.batch * options.sizes.context,
                         .unit = "characters"});
  for (int64_t i = 0; i < steps; ++i) {
    const double now = rate(i);
    optimizer.set_rate(now);
    // All draw the same places, and each takes its share of them.
    const auto [all_x, all_y] = text.batch(options.batch, options.sizes.context);
    const Tensor x = options.share(all_x), y = options.share(all_y);
    const Tensor own = is_compiled ? meter.time(compiled, x, y) : meter.time(step, x, y);
    const Tensor loss = options.is_parallel ? dist::all_reduce(own, dist::Reduce::mean) : own;
    losses.add(loss, now);
    progress.step(progress.is_due() ? fmt::format("loss {:.3f}", loss.item<float>()) : "");
  }
  Trained result = {model, meter.finish(model, optimizer), losses.picture()};
  if (options.is_parallel)
    result.picture += fmt::format("ranks: {}, the last loss: {:.7f}\n", options.share.ranks,
                                  losses.last().item<float>());
  result.run.compile_s = examples::compile_seconds(compiled.explain());
  return result;
}

/// What the model writes after the prompt, eagerly and compiled; false if they differ.
bool write(const Gpt& model, const Text& text, const Options& options, std::string& written) {
  const nitinol::NoGradients scope;
  const chargpt::Writing writing = {.length = options.length,
                                    .end = text.numbers_of("\n").front(),
                                    .temperature = options.temperature};
  const auto plain = [&](const Tensor& prompt) { return chargpt::write(model, prompt, writing); };
  const auto compiled = nitinol::compile(plain, {.name = "write"});
  const std::vector<int64_t> prompt = text.numbers_of(options.prompt);
  const auto timed = [&](const auto& f) {
    nitinol::manual_seed(options.seed);
    const auto start = std::chrono::steady_clock::now();
    const Tensor result = f(nitinol::from_span(std::span(prompt), {std::ssize(prompt)}));
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    return std::pair(result.to_vector<int64_t>(),
                     took.count() * 1e3 / static_cast<double>(std::max<int64_t>(result.size(), 1)));
  };
  const auto [eager, eager_ms] = timed(plain);
  const auto [first, first_ms] = timed(compiled);
  timed(compiled);  // of lengths that came once there is code now
  const auto [last, last_ms] = timed(compiled);
  written = options.prompt;
  for (const int64_t number : eager) written += text.alphabet()[static_cast<std::size_t>(number)];
  const bool is_same = first == eager && last == eager;
  fmt::print(
      "\nwrote {} characters: eager {:.2f} ms each, compiled {:.2f} ms ({:.2f} ms at first, "
      "with compiling)\nthe same characters: {}\n",
      eager.size(), eager_ms, last_ms, first_ms, is_same ? "yes" : "no");
  return is_same;
}

/// Returns false if eager and compiled disagree.
bool run(Options options) {
  options.share = examples::Share::of(options.batch, options.is_parallel);
  if (options.threads > 0) nitinol::set_num_threads(options.threads);
  if (options.files.empty()) {
    options.files = chargpt::documents_of(std::filesystem::path(NITINOL_EXAMPLE_DIR) / "../..");
  }
  const Text text(chargpt::read_files(options.files));
  if (text.size() <= options.sizes.context) throw std::runtime_error("there is too little text");
  if (options.prompt.empty()) throw std::runtime_error("there must be a prompt to go on from");
  static_cast<void>(text.numbers_of(options.prompt));
  options.sizes.characters = std::ssize(text.alphabet());
  int64_t parameters = 0;
  for (const auto& p : nn::parameters(gpt(options.sizes))) parameters += p.get().size();
  fmt::print("{} characters of {} files, {} different; {} parameters, {} threads\n\n", text.size(),
             options.files.size(), text.alphabet().size(), parameters, nitinol::num_threads());

  const examples::Run eager = train("eager", false, options.compared, text, options).run;
  const examples::Run compiled = train("compiled", true, options.compared, text, options).run;
  examples::print_comparison(eager, compiled);
  fmt::print("\n");
  const Trained trained = train("train", true, options.steps, text, options);
  std::string written;
  const bool writes_same = write(trained.model, text, options, written);
  if (!options.save.empty() && options.share.rank == 0) nn::save(options.save, trained.model);
  fmt::print("\n{}\n{}", written, trained.picture);

  if (!options.json.empty()) {
    nlohmann::json report = examples::to_json(eager, compiled);
    report.update({{"characters", text.size()},
                   {"parameters", parameters},
                   {"threads", nitinol::num_threads()},
                   {"training", examples::to_json(trained.run)},
                   {"sample", written}});
    std::ofstream(options.json) << report.dump(2) << '\n';
  }
  return examples::same_bits(eager, compiled) && writes_same;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CLI::App app("Trains a small GPT on this project's documents and lets it write.");
    app.option_defaults()->always_capture_default();
    app.add_option("--steps", options.steps, "of training")->check(examples::positive());
    app.add_option("--compared", options.compared, "steps made eagerly, too")
        ->check(examples::positive());
    app.add_option("--batch", options.batch, "pieces of text in a step")
        ->check(examples::positive());
    app.add_option("--rate", options.rate, "the highest learning rate")
        ->check(examples::positive());
    app.add_option("--context", options.sizes.context, "how many characters back it sees")
        ->check(examples::positive());
    app.add_option("--width", options.sizes.width, "features of a character")
        ->check(examples::positive());
    app.add_option("--heads", options.sizes.heads, "of attention; they divide the width")
        ->check(examples::positive());
    app.add_option("--blocks", options.sizes.blocks, "of attention and MLP")
        ->check(examples::positive());
    app.add_option("--threads", options.threads, "0: all cores")->check(CLI::Range(0, 1024));
    app.add_option("--seed", options.seed, "start of all random numbers");
    app.add_option("--prompt", options.prompt, "what the written text begins with");
    app.add_option("--length", options.length, "characters to write, and on to the end of the line")
        ->check(CLI::Range(1, 1'000'000));
    app.add_option("--temperature", options.temperature, "the lower, the likelier the characters")
        ->check(examples::positive());
    app.add_option("--json", options.json, "write all figures to this file");
    app.add_option("--save", options.save, "write the model to this file");
    app.add_option("files", options.files, "text; without any, README.md and docs/*.md");
    examples::add_data_parallel(app, options.is_parallel);
    examples::add_log(app, options.log);
    examples::add_device(app);
    CLI11_PARSE(app, argc, argv);
    return run(options) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chargpt: %s\n", error.what());
    return 2;
  }
}
