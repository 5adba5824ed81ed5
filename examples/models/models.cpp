// Models as they are in the literature: parameters, bits and times, eagerly and compiled.
//
// Data are random: what is compared is the same. With --small the models are, too, and run in
// tests.

#include "examples/comparison.h"
#include "examples/models/gpt2.h"
#include "examples/models/resnet.h"
#include "examples/models/tagger.h"
#include "examples/models/unet.h"
#include "examples/models/vae.h"
#include "examples/models/vit.h"
#include "examples/options.h"
#include <nitinol/nitinol.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

namespace {

namespace nn = nitinol::nn;
using nitinol::Tensor;

struct Options {
  bool is_small = false;
  int64_t calls = 6;
  int64_t length = 20;
  int threads = 0;
  uint64_t seed = 0;
  std::string json, save, log;
  std::vector<std::string> models;
};

// ---- what is compared

using Tensors = std::vector<Tensor>;

/// A model of any type.
struct Subject {
  std::vector<nn::NamedVariable> variables;
  std::function<Tensors(const Tensors&)> call;
  std::function<Tensor(const Tensors&)> loss;  ///< of inputs, of which the last is what is wanted
  std::function<void()> eval;
};

/// `call`: of a model and inputs; `loss`: of its result and what is wanted.
template <class Model, class Call, class Loss>
Subject subject_of(const Model& model, const Call& call, const Loss& loss) {
  return {.variables = nn::named_variables(model),
          .call = [=](const Tensors& x) { return Tensors{call(model, x)}; },
          .loss = [=](const Tensors& x) { return loss(call(model, x), x.back()); },
          .eval = [=] { nn::eval(model); }};
}
template <class Model, class Loss>
Subject subject_of(const Model& model, const Loss& loss) {
  return subject_of(
      model, [](const Model& m, const Tensors& x) { return m(x[0]); }, loss);
}

struct Task {
  std::string name;
  std::function<Subject()> make;
  std::function<Tensors()> draw;
};

Tensor class_loss(const Tensor& scores, const Tensor& classes) {
  return nn::cross_entropy(scores, classes);
}
Tensor pixel_loss(const Tensor& scores, const Tensor& classes) {
  return nn::cross_entropy(moveaxis(scores, 1, -1), classes);
}

Tensors images(int64_t batch, int64_t size, int64_t classes) {
  const Tensor x = nitinol::randn({batch, 3, size, size});
  return {x, nitinol::randint(0, classes, {batch})};
}
Tensors pixels(int64_t batch, int64_t size) {
  const Tensor x = nitinol::randn({batch, 3, size, size});
  return {x, nitinol::randint(0, 2, {batch, size, size})};
}
Tensors text(int64_t batch, int64_t positions, int64_t tokens) {
  const Tensor x = nitinol::randint(0, tokens, {batch, positions + 1});
  return {slice(x, 1, {0, -1}), slice(x, 1, {1})};
}
Tensors sentences(int64_t batch, int64_t words, int64_t tags) {
  const Tensor lengths = nitinol::randint(1, 13, {batch});
  const Tensor is_word = nitinol::arange(12) < unsqueeze(lengths, 1);
  const Tensor x = nitinol::randint(1, words, {batch, 12}) * is_word;
  return {x, lengths, nitinol::randint(1, tags, {batch, 12}) * is_word};
}
Tensors digits(int64_t batch, int64_t count) {
  const Tensor x = nitinol::rand({batch, count});
  return {x, x};
}

Subject of_resnet(const models::ResNetSizes& sizes) {
  return subject_of(models::resnet(sizes), class_loss);
}
Subject of_vit(const models::VisionTransformerSizes& sizes) {
  return subject_of(models::vision_transformer(sizes), class_loss);
}
Subject of_gpt2(const models::Gpt2Sizes& sizes) {
  return subject_of(models::gpt2(sizes), class_loss);
}
Subject of_unet(const models::UNetSizes& sizes) {
  return subject_of(models::unet(sizes), pixel_loss);
}
Subject of_tagger(const models::TaggerSizes& sizes) {
  return subject_of(
      models::tagger(sizes),
      [](const models::Tagger& m, const Tensors& x) { return m(x[0], x[1]); }, models::tagger_loss);
}
Subject of_vae(const models::VaeSizes& sizes) {
  const models::Vae model = models::vae(sizes);
  Subject subject = subject_of(
      model, [](const models::Vae& m, const Tensors& x) { return m(x[0]).logits; }, class_loss);
  subject.loss = [=](const Tensors& x) { return models::vae_loss(model(x[0]), x[1]); };
  return subject;
}

constexpr models::Gpt2Sizes small_gpt2 = {
    .tokens = 50, .context = 32, .width = 24, .heads = 3, .depth = 2};

std::vector<Task> full_tasks() {
  return {{"resnet18",
           [] {
             return of_resnet({.blocks = {2, 2, 2, 2}});
           },
           [] { return images(4, 224, 1000); }},
          {"resnet50",
           [] {
             return of_resnet({.blocks = {3, 4, 6, 3}, .is_bottleneck = true});
           },
           [] { return images(2, 224, 1000); }},
          {"vit", [] { return of_vit({}); }, [] { return images(4, 224, 1000); }},
          {"gpt2", [] { return of_gpt2({}); }, [] { return text(1, 64, 50257); }},
          {"unet", [] { return of_unet({}); }, [] { return pixels(1, 128); }},
          {"tagger", [] { return of_tagger({}); }, [] { return sentences(16, 20000, 18); }},
          {"vae", [] { return of_vae({}); }, [] { return digits(64, 784); }}};
}

std::vector<Task> small_tasks() {
  const models::VisionTransformerSizes small_vit = {
      .size = 16, .patch = 4, .width = 24, .depth = 2, .heads = 3, .classes = 10};
  return {{"resnet18",
           [] {
             return of_resnet({.blocks = {1, 1}, .classes = 10, .width = 8});
           },
           [] { return images(2, 32, 10); }},
          {"resnet50",
           [] {
             return of_resnet({.blocks = {1, 2}, .is_bottleneck = true, .classes = 10, .width = 4});
           },
           [] { return images(2, 32, 10); }},
          {"vit", [=] { return of_vit(small_vit); }, [] { return images(2, 16, 10); }},
          {"gpt2", [] { return of_gpt2(small_gpt2); }, [] { return text(2, 8, 50); }},
          {"unet", [] { return of_unet({.width = 4, .depth = 2}); }, [] { return pixels(2, 16); }},
          {"tagger", [] { return of_tagger({.words = 50, .tags = 5, .width = 8, .hidden = 6}); },
           [] { return sentences(3, 50, 5); }},
          {"vae", [] { return of_vae({.pixels = 36, .hidden = 16, .code = 4}); },
           [] { return digits(4, 36); }}};
}

// ---- how

/// Writes a line of what two runs took, and all figures into `json`.
bool report(const std::string& what, const examples::Run& eager, examples::Run compiled,
            const nitinol::Explanation& explanation, nlohmann::json& json) {
  compiled.compile_s = examples::compile_seconds(explanation);
  const bool is_same = examples::same_bits(eager, compiled);
  fmt::print(
      "  {:<10} eager {:>9}, {:>8}; compiled {:>9}, {:>8}, compiling {}; {} of {} by plans; "
      "bit-identical: {}\n",
      what, examples::duration(eager.fastest_s), examples::megabytes(eager.peak_bytes),
      examples::duration(compiled.fastest_s), examples::megabytes(compiled.peak_bytes),
      examples::duration(compiled.compile_s), explanation.plan_calls, explanation.calls,
      is_same ? "yes" : "no");
  std::fflush(stdout);
  json[what] = examples::to_json(eager, compiled);
  return is_same;
}

/// Compares what a model makes of its inputs.
bool infer(const Task& task, const Options& options, nlohmann::json& json) {
  const nitinol::NoGradients scope;
  const Subject subject = task.make();
  const Tensors inputs = task.draw();
  subject.eval();
  const auto compiled = nitinol::compile(subject.call, {.name = "infer"});
  const auto run = [&](const auto& function) {
    nitinol::manual_seed(1);
    examples::Meter meter(options.calls);
    Tensor found;
    for (int64_t i = 0; i < options.calls; ++i)
      static_cast<void>(meter.time([&] { return sum(found = function(inputs)[0]); }));
    return meter.finish(std::vector<nn::NamedVariable>{{"found", nitinol::Variable(found)}});
  };
  const examples::Run eager = run(subject.call);
  const examples::Run with_plans = run(compiled);
  return report("inference", eager, with_plans, compiled.explain(), json);
}

/// Compares all parameters after some steps.
bool train(const Task& task, const Options& options, nlohmann::json& json) {
  nitinol::Explanation explanation;
  const auto run = [&](bool is_compiled) {
    nitinol::manual_seed(options.seed);
    examples::Meter meter(options.calls);
    const Subject subject = task.make();
    const Tensors data = task.draw();
    constexpr double rate = 1e-4;
    const nn::Adam optimizer(nn::parameters(subject.variables), {.rate = rate});
    const auto step = [&](const Tensors& x) {
      optimizer.zero_grad();
      const Tensor loss = subject.loss(x);
      loss.backward();
      optimizer.step();
      return stop_gradient(loss);
    };
    const auto compiled = nitinol::compile(step, {.name = "train_step"});
    examples::Losses losses(options.log, task.name + (is_compiled ? "-compiled" : "-eager"));
    for (int64_t i = 0; i < options.calls; ++i) {
      losses.add(is_compiled ? meter.time(compiled, data) : meter.time(step, data), rate);
    }
    explanation = compiled.explain();
    if (!options.save.empty()) nn::save(options.save + "." + task.name, subject.variables);
    return meter.finish(subject.variables, optimizer);
  };
  const examples::Run eager = run(false);
  const examples::Run compiled = run(true);
  return report("training", eager, compiled, explanation, json);
}

/// Compares what a Gpt2 writes with caches, and without.
bool write(const models::Gpt2& model, const Tensor& prompt, const Options& options,
           nlohmann::json& json) {
  const nitinol::NoGradients scope;
  const auto compiled = nitinol::compile(models::next_tokens, {.name = "next_tokens"});
  const auto run = [&](const auto& function) {
    examples::Meter meter(options.length);
    const models::Caches caches =
        models::caches(model, prompt.shape()[0], prompt.shape()[1] + options.length);
    Tensors found = {prompt};
    const auto add_one = [&] {
      found.push_back(function(model, caches, found.back()));
      return sum(found.back());
    };
    for (int64_t i = 0; i < options.length; ++i) static_cast<void>(meter.time(add_one));
    const Tensor written = nitinol::concat(found, 1).to(nitinol::f64);
    return meter.finish(std::vector<nn::NamedVariable>{{"written", nitinol::Variable(written)}});
  };
  const examples::Run eager = run(models::next_tokens);
  const examples::Run with_plans = run(compiled);
  const bool is_same = report("writing", eager, with_plans, compiled.explain(), json);
  Tensor seen = prompt;
  for (int64_t i = 0; i < options.length; ++i)
    seen = nitinol::concat({seen, models::next_tokens(model, {}, seen)}, 1);
  const bool is_as_without = examples::same_bits(seen.to(nitinol::f64), eager.state[0]);
  fmt::print("             the same tokens without a cache: {}\n", is_as_without ? "yes" : "no");
  return is_same && is_as_without;
}

bool run(const Options& options) {
  if (options.threads > 0) nitinol::set_num_threads(options.threads);
  bool is_same = true;
  nlohmann::json json;
  for (const Task& task : options.is_small ? small_tasks() : full_tasks()) {
    const auto& names = options.models;
    if (!names.empty() && std::ranges::find(names, task.name) == names.end()) continue;
    nitinol::manual_seed(options.seed);
    int64_t count = 0;
    for (const auto& parameter : nn::parameters(task.make().variables)) count += parameter.size();
    fmt::print("{}: {} parameters\n", task.name, count);
    nlohmann::json& of_task = json[task.name];
    of_task["parameters"] = count;
    is_same = infer(task, options, of_task) && is_same;
    is_same = train(task, options, of_task) && is_same;
    if (task.name == "gpt2") {
      const models::Gpt2 model = models::gpt2(options.is_small ? small_gpt2 : models::Gpt2Sizes());
      is_same = write(model, task.draw()[0], options, of_task) && is_same;
    }
  }
  if (!options.json.empty()) std::ofstream(options.json) << json.dump(2) << '\n';
  return is_same;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CLI::App app("Compares models as they are in the literature, eagerly and compiled.");
    app.option_defaults()->always_capture_default();
    app.add_flag("--small", options.is_small, "models and data of a few numbers");
    app.add_option("--calls", options.calls, "of each function")->check(examples::positive());
    app.add_option("--length", options.length, "tokens that GPT-2 writes")
        ->check(examples::positive());
    app.add_option("--threads", options.threads, "0: all cores")->check(CLI::Range(0, 1024));
    app.add_option("--seed", options.seed, "start of all random numbers");
    app.add_option("--json", options.json, "write all figures to this file");
    app.add_option("--save", options.save, "write each trained model to a file that begins so");
    examples::add_log(app, options.log);
    app.add_option("models", options.models, "some of them; all if none")
        ->check(CLI::IsMember({"resnet18", "resnet50", "vit", "gpt2", "unet", "tagger", "vae"}));
    examples::add_device(app);
    CLI11_PARSE(app, argc, argv);
    return run(options) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "models: %s\n", error.what());
    return 2;
  }
}
