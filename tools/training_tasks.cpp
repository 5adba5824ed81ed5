#include "tools/training_tasks.h"

#include "examples/chargpt/model.h"
#include "examples/digits/model.h"
#include "examples/keras_vs_torch/models.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace nitinol;

constexpr int64_t batch = 32;
constexpr int calls = 4;  ///< of a compiled function, of which the first are recorded

/// What a network is trained with.
struct Data {
  Tensor x, y;
};

Tensor drawn(const Shape& shape, DType dtype) {
  return cast(rand(shape) - 0.5, dtype);
}

Tensor classes(int64_t count) {
  return arange(batch) % count;
}

/// Steps by each optimizer, and the network by itself. Each task has a network of its own, made by
/// `make`, as they run side by side.
template <class Make, class Loss>
void add(Tasks& tasks, const std::string& name, const Make& make, const Loss& loss,
         const Data& data) {
  const auto add_step = [&](const char* by, const auto& optimizer_of) {
    tasks.push_back({fmt::format("{} by {}", name, by), [=] {
                       const auto model = make();
                       const auto optimizer = optimizer_of(nn::parameters(model));
                       const auto step = compile([&](const Tensor& x, const Tensor& y) {
                         optimizer.zero_grad();
                         const Tensor value = loss(model(x), y);
                         value.backward();
                         optimizer.step();
                         return stop_gradient(value);
                       });
                       for (int i = 0; i < calls; ++i) static_cast<void>(step(data.x, data.y));
                     }});
  };
  using All = std::vector<Variable>;
  add_step("Sgd", [](const All& all) { return nn::Sgd(all); });
  add_step("Sgd with momentum", [](const All& all) { return nn::Sgd(all, {.momentum = 0.9}); });
  add_step("Adam", [](const All& all) { return nn::Adam(all); });
  add_step("AdamW", [](const All& all) { return nn::AdamW(all); });
  add_step("RmsProp", [](const All& all) { return nn::RmsProp(all); });
  tasks.push_back({name, [=] {
                     const auto model = make();
                     const auto apply = compile([&](const Tensor& x) {
                       const NoGradients scope;
                       return model(x);
                     });
                     for (int i = 0; i < calls; ++i) static_cast<void>(apply(data.x));
                   }});
}

/// A perceptron of two layers, with something between them.
template <class Between>
auto perceptron(DType dtype, int64_t out, Between between) {
  return [=] {
    return nn::Sequential(nn::linear(20, 24, {.dtype = dtype}), between(),
                          nn::linear(24, out, {.dtype = dtype}));
  };
}

Tensor entropy(const Tensor& scores, const Tensor& targets) {
  return nn::cross_entropy(scores, targets);
}

Tensor entropy_of_characters(const Tensor& scores, const Tensor& targets) {
  return nn::cross_entropy(reshape(scores, {targets.size(), scores.shape()[2]}),
                           reshape(targets, {targets.size()}));
}

void add_perceptrons(Tasks& tasks, DType dtype) {
  const Tensor x = drawn({batch, 20}, dtype);
  using Function = Tensor (*)(const Tensor&);
  const std::pair<const char*, Function> activations[] = {{"relu", relu},           {"tanh", tanh},
                                                          {"sigmoid", sigmoid},     {"gelu", gelu},
                                                          {"gelu_tanh", gelu_tanh}, {"silu", silu}};
  const auto mse = [](const Tensor& a, const Tensor& b) { return nn::mse_loss(a, b); };
  for (const auto& [name, function] : activations) {
    const auto between = [f = function] { return f; };
    add(tasks, fmt::format("cross_entropy of a perceptron of {}", name),
        perceptron(dtype, 10, between), entropy, {x, classes(10)});
    add(tasks, fmt::format("mse_loss of a perceptron of {}", name), perceptron(dtype, 3, between),
        mse, {x, drawn({batch, 3}, dtype)});
  }
  const auto model = perceptron(dtype, 1, [] { return static_cast<Function>(relu); });
  const Tensor y = drawn({batch, 1}, dtype);
  const auto huber = [](const Tensor& a, const Tensor& b) { return nn::huber_loss(a, b); };
  const auto l1 = [](const Tensor& a, const Tensor& b) { return nn::l1_loss(a, b); };
  const auto bce = [](const Tensor& a, const Tensor& b) { return nn::bce_with_logits(a, b); };
  add(tasks, "l1_loss", model, l1, {x, y});
  add(tasks, "huber_loss", model, huber, {x, y});
  add(tasks, "bce_with_logits", model, bce, {x, cast(y > 0.0, dtype)});
}

void add_layers(Tasks& tasks, DType dtype) {
  const Tensor x = drawn({batch, 20}, dtype);
  const auto relu_of = [](const Tensor& values) { return relu(values); };
  const auto add_with = [&](const char* name, const auto& layer) {
    const auto between = [=] { return nn::Sequential(layer(), relu_of); };
    add(tasks, name, perceptron(dtype, 10, between), entropy, {x, classes(10)});
  };
  add_with("layer_norm", [=] { return nn::layer_norm(24, {.dtype = dtype}); });
  add_with("rms_norm", [=] { return nn::rms_norm(24, 1e-6, dtype); });
  add_with("batch_norm", [=] { return nn::batch_norm(24, {.dtype = dtype}); });
  add_with("dropout", [] { return nn::dropout(0.5); });
}

}  // namespace

Tasks training_tasks(DType dtype) {
  Tasks tasks;
  add_perceptrons(tasks, dtype);
  add_layers(tasks, dtype);
  if (dtype != f32) return tasks;  // the examples' networks are of float32
  const auto add_example = [&](const char* name, const auto& make, const Shape& in) {
    add(tasks, name, make, entropy, {drawn(in, f32), classes(10)});
  };
  add_example("digits, perceptron", [] { return digits::Mlp{}; }, {batch, digits::pixels});
  add_example("digits, convolutions", [] { return digits::Cnn{}; }, {batch, digits::pixels});
  add_example("keras_vs_torch, small", [] { return keras_vs_torch::Small{}; }, {batch, 100});
  add_example("keras_vs_torch, normalised", [] { return keras_vs_torch::Normalised{}; },
              {batch, 100});
  add_example("keras_vs_torch, recurrent", [] { return keras_vs_torch::Recurrent{}; },
              {batch, 100});
  const chargpt::Sizes sizes = {.characters = 8, .context = 8, .width = 16, .blocks = 1};
  const Tensor text = reshape(arange(2 * 9) % 8, {2, 9});
  add(tasks, "chargpt", [=] { return chargpt::gpt(sizes); }, entropy_of_characters,
      {slice(text, 1, {0, 8}), slice(text, 1, {1, 9})});
  return tasks;
}
