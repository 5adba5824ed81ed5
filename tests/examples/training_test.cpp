// The models of the examples: the first losses are PyTorch's, and 100 steps end with the same bits
// compiled as eagerly.
#include "examples/chargpt/model.h"
#include "examples/digits/model.h"
#include "examples/keras_vs_torch/models.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/reference/numbers.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

// ---- what tests/reference/make_training.py computes, too

template <class Model>
void fill(const Model& model) {
  int64_t k = 0;
  for (const nn::NamedVariable& named : nn::named_parameters(model)) {
    const Shape& shape = named.variable.shape();
    const Tensor values = test::number(k++, shape);
    if (shape.size() == 4) {
      const int64_t inputs = shape[1] * shape[2] * shape[3];
      named.variable.set(values * (2 / std::sqrt(static_cast<double>(inputs))));
    } else if (shape.size() == 2) {
      named.variable.set(values * (2 / std::sqrt(static_cast<double>(shape[0]))));
    } else {
      named.variable.set(named.name.ends_with("bias") ? values * 0.1 : values * 0.1 + 1);
    }
  }
}

std::vector<double> recorded(const std::string& name) {
  static const nlohmann::json json = test::recorded_in("training.json");
  return json.at(name).get<std::vector<double>>();
}

// ---- training

template <class Model>
auto step_of(const Model& model, const nn::Adam& optimizer) {
  return [&model, &optimizer](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(model(x), y);
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  };
}

/// 20 steps, eagerly and compiled, of a float64 copy of `model`.
template <class Model>
void check_losses(const std::string& name, const Model& made, const Tensor& x, const Tensor& y) {
  INFO(name);
  const std::vector<double> expected = recorded(name);
  REQUIRE(expected.size() == 20);
  for (const bool is_compiled : {false, true}) {
    const Model model = nn::to(made, f64);
    fill(model);
    const nn::Adam optimizer(nn::parameters(model), {.rate = 1e-3});
    const auto step = step_of(model, optimizer);
    const auto compiled = compile(step);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("step " << i << (is_compiled ? ", compiled" : ", eager"));
      const Tensor loss = is_compiled ? compiled(x, y) : step(x, y);
      CHECK(loss.item<double>() == Approx(expected[i]).epsilon(1e-10));
    }
    if (is_compiled) CHECK(compiled.explain().plan_calls > 0);
  }
}

template <class Model>
std::vector<Tensor> state_after_100_steps(bool is_compiled, Model (*make)(), const Tensor& x,
                                          const Tensor& y) {
  manual_seed(3);
  const Model model = make();
  const nn::Adam optimizer(nn::parameters(model), {.rate = 1e-3});
  const auto step = step_of(model, optimizer);
  const auto compiled = compile(step, {.check = Check::never});  // which no race turns eager
  std::vector<Tensor> state;
  for (int i = 0; i < 100; ++i) state.push_back(is_compiled ? compiled(x, y) : step(x, y));
  if (is_compiled) {
    INFO(to_string(compiled.explain()));
    CHECK(compiled.explain().plan_calls >= 90);
  }
  for (const auto& named : nn::named_variables(model)) state.push_back(named.variable.get());
  for (const auto& named : nn::named_variables(optimizer)) state.push_back(named.variable.get());
  return state;
}

/// Losses, parameters, running statistics and the optimizer's averages.
template <class Model>
void check_bits(Model (*make)(), const Tensor& x, const Tensor& y) {
  const std::vector<Tensor> eager = state_after_100_steps(false, make, x, y);
  const std::vector<Tensor> compiled = state_after_100_steps(true, make, x, y);
  REQUIRE(eager.size() == compiled.size());
  for (std::size_t i = 0; i < eager.size(); ++i) {
    INFO("value " << i << " of " << eager.size());
    CHECK(same_bits(eager[i], compiled[i]));
  }
}

template <class Model>
Model made() {
  return {};
}

chargpt::Gpt tiny_gpt() {
  return chargpt::gpt({.characters = 11, .context = 8, .width = 16, .heads = 2, .blocks = 2});
}

}  // namespace

TEST_CASE("the examples' models learn as in PyTorch", "[nn][examples][reference][no-isa]") {
  const Threads one(1);
  const Tensor x = test::number(1000, {64, 100}) * 3.5;
  const Tensor y = test::classes({64}, 10);
  check_losses("digits_mlp", digits::Mlp(), test::number(1001, {64, 64}) + 0.5, y);
  check_losses("digits_cnn", digits::Cnn(), test::number(1001, {16, 64}) + 0.5,
               test::classes({16}, 10));
  check_losses("small", keras_vs_torch::Small(), x, y);
  keras_vs_torch::Normalised normalised;
  normalised.drop_1.rate = normalised.drop_2.rate = 0;
  check_losses("normalised", normalised, x, y);
  check_losses("recurrent", keras_vs_torch::Recurrent(), x, y);
  const Tensor letters = test::classes({4, 8}, 11);
  check_losses("gpt", tiny_gpt(), letters, (letters * 3 + 1) % 11);
}

TEST_CASE("100 compiled steps of the examples' models end with eager's bits",
          "[nn][examples][jit]") {
  const Threads one(1);  // so small that threads only cost time
  manual_seed(2);
  const Tensor x = randn({16, 100});
  const Tensor y = test::classes({16}, 10);
  check_bits(made<digits::Mlp>, rand({16, 64}), y);
  check_bits(made<digits::Cnn>, rand({16, 64}), y);
  check_bits(made<keras_vs_torch::Small>, x, y);
  check_bits(made<keras_vs_torch::Normalised>, x, y);
  check_bits(made<keras_vs_torch::Recurrent>, x, y);
  check_bits(tiny_gpt, test::classes({4, 8}, 11), test::classes({4, 8}, 10));
}
