// The models of examples/models: from PyTorch's weights they compute what PyTorch does, compiled as
// eagerly, and have as many parameters as in the literature.
#include "examples/models/gpt2.h"
#include "examples/models/resnet.h"
#include "examples/models/tagger.h"
#include "examples/models/unet.h"
#include "examples/models/vae.h"
#include "examples/models/vit.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/reference/numbers.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using namespace nitinol;

namespace models_test {
namespace {

// ---- what tests/reference/make_models.py computes, too

/// A state_dict as the file has its names and shapes.
std::vector<NamedTensor> state_of(const nlohmann::json& recorded) {
  std::vector<NamedTensor> state;
  for (const auto& row : recorded.at("state")) {
    const auto name = row.at(0).get<std::string>();
    const auto sizes = row.at(1).get<std::vector<int64_t>>();
    const Shape shape{std::span<const int64_t>(sizes)};
    Tensor values = test::number(std::ssize(state), shape);
    if (shape.size() > 1) {
      const int64_t inputs = element_count(shape) / shape[0];
      values = values * (2 / std::sqrt(static_cast<double>(inputs)));
    } else if (name.find("bias") != std::string::npos || name.find("mean") != std::string::npos) {
      values = values * 0.1;
    } else {
      values = values * 0.1 + 1;
    }
    if (name == "lm_head.weight") values = state.front().second;
    state.emplace_back(name, values);
  }
  return state;
}

const nlohmann::json& recorded(const std::string& name) {
  static const nlohmann::json json = test::recorded_in("models.json");
  return json.at(name);
}

void check_close(const std::vector<double>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    INFO("number " << i);
    CHECK(found[i] == Approx(expected[i]).epsilon(1e-9).margin(1e-12));
  }
}

/// Some elements, as the file has them.
std::vector<double> some_of(const Tensor& y) {
  const int64_t step = std::max<int64_t>(1, y.size() / 20);
  return slice(flatten(y), 0, {Range::open, Range::open, step}).to_vector<double>();
}

/// Every signature has a Plan and nothing ran eagerly but what was recorded.
void check_compiled(const Explanation& explanation, uint64_t plan_calls) {
  INFO(to_string(explanation));
  for (const auto& signature : explanation.signatures) CHECK(signature.tier == Tier::traced);
  CHECK(explanation.plan_calls >= plan_calls);
  CHECK(explanation.eager_calls == 0);
}

/// `call`: of a model and inputs; `loss_of`: of a model and inputs.
template <class Model, class Call, class Loss>
void check(const std::string& name, const Model& made, const nn::PytorchOptions& options,
           const Call& call, const Loss& loss_of) {
  INFO(name);
  const nlohmann::json& expected = recorded(name);
  const Threads one(1);  // so small that threads only cost time
  const auto load = [&] {
    Model model = nn::to(made, f64);
    nn::load_pytorch(state_of(expected), model, options);
    return model;
  };
  {
    const Model model = load();
    nn::eval(model);
    const NoGradients scope;
    const auto compiled = compile([&] { return call(model); }, {.check = Check::never});
    const Tensor eager = call(model);
    check_close(some_of(eager), expected.at("result").get<std::vector<double>>());
    for (int i = 0; i < 4; ++i) CHECK(same_bits(compiled(), eager));
    check_compiled(compiled.explain(), 2);
  }
  std::vector<Tensor> ends[2];
  for (const bool is_compiled : {false, true}) {
    const Model model = load();
    nn::train(model);
    const nn::Adam optimizer(nn::parameters(model), {.rate = 1e-3});
    const auto step = [&] {
      optimizer.zero_grad();
      const Tensor loss = loss_of(model);
      loss.backward();
      optimizer.step();
      return stop_gradient(loss);
    };
    const auto compiled = compile(step, {.check = Check::never});
    std::vector<double> losses;
    for (int i = 0; i < 5; ++i)
      losses.push_back((is_compiled ? compiled() : step()).template item<double>());
    losses.resize(3);
    check_close(losses, expected.at("losses").get<std::vector<double>>());
    if (is_compiled) check_compiled(compiled.explain(), 3);
    for (const auto& named : nn::named_variables(model))
      ends[is_compiled].push_back(named.variable.get());
  }
  for (std::size_t i = 0; i < ends[0].size(); ++i) CHECK(same_bits(ends[0][i], ends[1][i]));
}

template <class Model>
void check_image_classes(const std::string& name, const Model& model,
                         const nn::PytorchOptions& options, const Tensor& x) {
  check(
      name, model, options, [&](const Model& m) { return m(x); },
      [&](const Model& m) { return nn::cross_entropy(m(x), test::classes({2}, 10)); });
}

template <class Model>
int64_t parameters_of(const Model& model) {
  int64_t count = 0;
  for (const Variable& parameter : nn::parameters(model)) count += parameter.size();
  return count;
}

models::Gpt2 small_gpt2() {
  return models::gpt2({.tokens = 50, .context = 32, .width = 24, .heads = 3, .depth = 2});
}

}  // namespace

TEST_CASE("image models compute from PyTorch's weights what PyTorch does",
          "[nn][examples][reference]") {
  const Tensor images = test::number(1000, {2, 3, 32, 32}) * 2;
  const Tensor squares = test::number(1001, {2, 3, 16, 16}) * 2;
  check_image_classes("resnet18", models::resnet({.blocks = {1, 1}, .classes = 10, .width = 8}),
                      models::torchvision(), images);
  check_image_classes(
      "resnet50",
      models::resnet({.blocks = {1, 2}, .is_bottleneck = true, .classes = 10, .width = 4}),
      models::torchvision(), images);
  check_image_classes(
      "vit",
      models::vision_transformer(
          {.size = 16, .patch = 4, .width = 24, .depth = 2, .heads = 3, .classes = 10}),
      models::timm(), squares);
  check(
      "unet", models::unet({.width = 4, .depth = 2}), {},
      [&](const models::UNet& m) { return m(squares); },
      [&](const models::UNet& m) {
        return nn::cross_entropy(moveaxis(m(squares), 1, -1), test::classes({2, 16, 16}, 2));
      });
}

TEST_CASE("models of text and codes compute from PyTorch's weights what PyTorch does",
          "[nn][examples][reference]") {
  const Tensor text = test::classes({2, 9}, 50);
  const Tensor x = slice(text, 1, {0, -1});
  check(
      "gpt2", small_gpt2(), models::hugging_face(), [&](const models::Gpt2& m) { return m(x); },
      [&](const models::Gpt2& m) { return nn::cross_entropy(m(x), slice(text, 1, {1})); });
  const Tensor lengths = tensor({12, 5, 9});
  const Tensor is_word = arange(12) < unsqueeze(lengths, 1);
  const Tensor words = (test::classes({3, 12}, 49) + 1) * is_word;
  const Tensor tags = (test::classes({3, 12}, 4) + 1) * is_word;
  check(
      "tagger", models::tagger({.words = 50, .tags = 5, .width = 8, .hidden = 6}), {},
      [&](const models::Tagger& m) { return m(words, lengths); },
      [&](const models::Tagger& m) { return models::tagger_loss(m(words, lengths), tags); });
  const Tensor pixels = test::number(1002, {4, 36}) + 0.5;
  const auto see = [&](const models::Vae& m) {  // the likeliest code
    const models::Seen seen = m(pixels);
    return models::Seen{m.draw(seen.mean), seen.mean, seen.log_variance};
  };
  check(
      "vae", models::vae({.pixels = 36, .hidden = 16, .code = 4}), {},
      [&](const models::Vae& m) { return see(m).logits; },
      [&](const models::Vae& m) { return models::vae_loss(see(m), pixels); });
}

TEST_CASE("GPT-2 writes the same with a cache as without, on two Plans", "[nn][examples][jit]") {
  const Threads one(1);
  manual_seed(4);
  const models::Gpt2 model = small_gpt2();
  const NoGradients scope;
  const Tensor prompt = test::classes({2, 5}, 50);
  Tensor seen = prompt;
  for (int i = 0; i < 24; ++i) seen = concat({seen, models::next_tokens(model, {}, seen)}, 1);
  const auto compiled = compile(models::next_tokens, {.check = Check::never});
  for (int repetition = 0; repetition < 4; ++repetition) {
    const models::Caches caches = models::caches(model, 2, 32);
    std::vector<Tensor> parts = {prompt};
    for (int i = 0; i < 24; ++i) parts.push_back(compiled(model, caches, parts.back()));
    CHECK(same_bits(concat(parts, 1), seen));
  }
  check_compiled(compiled.explain(), 4 * 24 - 6);
  CHECK(compiled.explain().signatures.size() == 2);
}

TEST_CASE("models have as many parameters as in the literature", "[nn][examples][no-isa]") {
  CHECK(parameters_of(models::resnet18()) == 11'689'512);
  CHECK(parameters_of(models::resnet50()) == 25'557'032);
  CHECK(parameters_of(models::vit_tiny()) == 5'717'416);
  // GPT-2 of 124,439,808 is made once, in bindings/python/tests/test_models.py: it takes seconds.
  CHECK(parameters_of(models::unet()) == 31'037'698);
  CHECK(parameters_of(models::vae()) == 652'824);
}

}  // namespace models_test
