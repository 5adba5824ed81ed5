// Layers: shapes, modes, gradients, and the same bits compiled.
#include "nn/layers.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace nitinol;

namespace {

Tensor values(const Shape& shape, uint64_t seed = 1) {
  const Generator generator(seed);
  return randn(shape, f64, generator);
}

/// The gradient of a layer's input agrees with central differences.
template <class Layer, class F>
void check_layer(const Layer& layer, const Tensor& x, const F& f) {
  const Layer wide = nn::to(layer, f64);
  CHECK_NOTHROW(check_gradients([&](const Tensor& given) { return f(wide, given); }, x));
}

}  // namespace

TEST_CASE("Linear is a product and a bias over the last axis", "[nn]") {
  const nn::Linear layer = nn::linear(3, 2);
  CHECK(layer.weight.shape() == Shape{3, 2});
  const Tensor x = randn({4, 5, 3});
  CHECK(same_bits(layer(x), matmul(x, layer.weight) + *layer.bias));
  CHECK(!nn::linear(3, 2, {.has_bias = false}).bias);
  CHECK(max(abs(layer.weight.get())).item<float>() <= 1 / std::sqrt(3.0F));
  CHECK_THROWS_WITH(layer(randn({4, 5})),
                    Catch::Contains("Linear") && Catch::Contains("3 features"));
}

TEST_CASE("Conv2d convolves images and adds a bias", "[nn]") {
  const nn::Conv2d layer = nn::conv2d(3, 8, {3, 2}, {.conv = {.stride = 2, .padding = 1}});
  CHECK(layer.weight.shape() == Shape{8, 3, 3, 2});
  CHECK(nn::parameters(layer).size() == 2);
  CHECK(max(abs(layer.weight.get())).item<float>() <= 1 / std::sqrt(18.0F));
  const Tensor x = randn({2, 3, 6, 7});
  CHECK(same_bits(layer(x), conv2d(x, layer.weight, *layer.bias, {.stride = 2, .padding = 1})));
  CHECK(!nn::conv2d(4, 4, 1, {.conv = {.groups = 2}, .has_bias = false}).bias);
  CHECK_THROWS_WITH(layer(randn({2, 4, 6, 7})),
                    Catch::Contains("Conv2d") && Catch::Contains("3 features"));
  CHECK_THROWS_WITH(nn::conv2d(4, 6, 3, {.conv = {.groups = 4}}), Catch::Contains("divides both"));
  check_layer(nn::conv2d(2, 3, 2, {.conv = {.padding = 1}}), values({1, 2, 3, 3}),
              [](const auto& l, const Tensor& t) { return l(t); });
}

TEST_CASE("a training step of a network on images is the same bits compiled", "[nn][jit]") {
  struct Net {
    nn::Conv2d first = nn::conv2d(1, 8, 3, {.conv = {.padding = 1}});
    nn::BatchNorm norm = nn::batch_norm(8);
    nn::Conv2d second = nn::conv2d(8, 16, 3, {.has_bias = false});
    nn::MaxPool2d pool = {2};
    nn::AvgPool2d mean = {2};
    nn::Linear out = nn::linear(int64_t{16} * 2 * 2, 10);
    Tensor operator()(const Tensor& x) const {
      const Tensor y = pool(relu(norm(first(x))));
      return out(flatten(mean(relu(second(y))), 1));
    }
  };
  const auto step = [](const Net& net, const nn::Sgd& optimizer, const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(net(x), arange(4));
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  };
  manual_seed(1);
  const Net eager;
  manual_seed(1);
  const Net other;
  const nn::Sgd of_eager(nn::parameters(eager)), of_other(nn::parameters(other));
  const auto compiled = compile([&](const Tensor& x) { return step(other, of_other, x); });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({4, 1, 12, 12});
    CHECK(same_bits(compiled(x), step(eager, of_eager, x)));
  }
  CHECK(same_bits(eager.first.weight.get(), other.first.weight.get()));
  CHECK(same_bits(eager.norm.running_var.get(), other.norm.running_var.get()));
  CHECK(compiled.explain().plan_calls > 0);
}

TEST_CASE("Embedding takes rows and gathers gradients of repeated ones", "[nn]") {
  const nn::Embedding layer = nn::embedding(5, 2);
  const Tensor y = layer(tensor({{1, 1}, {4, 0}}));
  CHECK(y.shape() == Shape{2, 2, 2});
  sum(y).backward();
  CHECK(same_bits(layer.weight.grad(),
                  tensor({{1.0F, 1.0F}, {2.0F, 2.0F}, {0.0F, 0.0F}, {0.0F, 0.0F}, {1.0F, 1.0F}})));
  CHECK_THROWS_WITH(layer(tensor({7})), Catch::Contains("take"));
}

TEST_CASE("norms have gradients that agree with central differences", "[nn]") {
  const Tensor x = values({3, 4});
  check_layer(nn::layer_norm(4), x, [](const auto& layer, const Tensor& t) { return layer(t); });
  check_layer(nn::rms_norm(4), x, [](const auto& layer, const Tensor& t) { return layer(t); });
  check_layer(nn::batch_norm(4), x, [](const auto& layer, const Tensor& t) { return layer(t); });
  check_layer(nn::batch_norm(2), values({2, 2, 3, 2}),
              [](const auto& layer, const Tensor& t) { return layer(t); });
}

TEST_CASE("BatchNorm keeps running statistics while it trains, and uses them in eval mode",
          "[nn]") {
  nn::BatchNorm layer = nn::to(nn::batch_norm(2), f64);
  const Tensor x = values({8, 2, 3}) * 3.0 + 1.0;
  const Tensor y = layer(x);
  CHECK(std::abs(mean(y).item<double>()) < 1e-12);
  CHECK(std::abs(var(y).item<double>() - 1) < 1e-4);
  const Tensor expected_mean = mean(x, {0, 2}) * 0.1;
  const Tensor expected_var = 0.9 + var(x, {0, 2}, 1) * 0.1;
  CHECK(max(abs(layer.running_mean - expected_mean)).item<double>() < 1e-14);
  CHECK(max(abs(layer.running_var - expected_var)).item<double>() < 1e-14);
  nn::eval(layer);
  const Tensor before = layer.running_mean;
  const Tensor z = layer(x);
  CHECK(same_bits(layer.running_mean.get(), before));
  const Tensor wanted =
      (x - reshape(layer.running_mean, {2, 1})) / sqrt(reshape(layer.running_var, {2, 1}) + 1e-5);
  CHECK(max(abs(z - wanted)).item<double>() < 1e-12);
}

TEST_CASE("running statistics move once per compiled step", "[nn][jit]") {
  const nn::BatchNorm a = nn::batch_norm(3);
  const nn::BatchNorm b = nn::batch_norm(3);
  const auto step = compile([&](const Tensor& x) { return sum(square(a(x))); });
  for (int i = 0; i < 9; ++i) {
    const Tensor x = randn({6, 3});
    CHECK(same_bits(step(x), sum(square(b(x)))));
    CHECK(same_bits(a.running_var.get(), b.running_var.get()));
  }
  CHECK(step.explain().plan_calls > 0);
}

TEST_CASE("Dropout zeroes its share and scales the rest", "[nn]") {
  nn::Dropout layer = nn::dropout(0.25);
  const Tensor y = layer(ones({100000}));
  const double kept = mean(cast(y != 0.0, f64)).item<double>();
  CHECK(std::abs(kept - 0.75) < 0.01);
  CHECK(max(y).item<float>() == 1 / 0.75F);
  nn::eval(layer);
  CHECK(same_bits(layer(y), y));
  CHECK_THROWS_WITH(nn::dropout(1.0), Catch::Contains("0 <= rate < 1"));
}

TEST_CASE("Lstm: one step by its formulas, and shapes", "[nn]") {
  const nn::Lstm layer = nn::to(nn::lstm(3, 2), f64);
  const Tensor x = values({4, 5, 3});
  const auto [sequence, last] = layer(x);
  CHECK(sequence.shape() == Shape{4, 5, 2});
  CHECK(same_bits(sequence[3], last.hidden));
  const Tensor gates = matmul(x[0], layer.input_weight) + layer.bias;
  const auto gate = [&](int64_t k) { return slice(gates, 1, {2 * k, 2 * k + 2}); };
  const Tensor cell = sigmoid(gate(0)) * tanh(gate(2));
  CHECK(max(abs(sequence[0] - sigmoid(gate(3)) * tanh(cell))).item<double>() < 1e-14);
  check_layer(layer, values({3, 2, 3}),
              [](const auto& l, const Tensor& t) { return l(t).sequence; });
}

TEST_CASE("an Lstm's first state gets its gradient, and goes on where another stopped", "[nn]") {
  const nn::Lstm layer = nn::to(nn::lstm(3, 2), f64);
  const Tensor x = values({4, 5, 3});
  const nn::Lstm::State start = {values({5, 2}, 2), values({5, 2}, 3)};
  // Every part of the result by every part of the state.
  CHECK_NOTHROW(check_gradients(
      [&](const nn::Lstm::State& state) {
        const auto [sequence, last] = layer(x, state);
        return std::tuple(sequence, last.hidden, last.cell);
      },
      start));
  CHECK_NOTHROW(check_gradients(
      [&](const nn::Lstm::State& state) { return layer(x, state).last.cell; }, start));
  CHECK_NOTHROW(
      check_gradients([&](const Tensor& given) { return layer(given, start).sequence; }, x));
  // A sequence in two halves is the whole one.
  const auto whole = layer(x, start);
  const auto first = layer(slice(x, 0, {0, 2}), start);
  const auto second = layer(slice(x, 0, {2, 4}), first.last);
  CHECK(same_library_bits(concat({first.sequence, second.sequence}), whole.sequence));
  CHECK(same_library_bits(second.last.cell, whole.last.cell));
  // The gradient crosses the cut.
  const auto through = [&](const nn::Lstm::State& state) {
    const auto half = layer(slice(x, 0, {0, 2}), state);
    return sum(layer(slice(x, 0, {2, 4}), half.last).sequence);
  };
  const auto direct = [&](const nn::Lstm::State& state) {
    return sum(slice(layer(x, state).sequence, 0, {2, 4}));
  };
  const nn::Lstm::State a = grad(through)(start);
  const nn::Lstm::State b = grad(direct)(start);
  CHECK(max(abs(a.hidden - b.hidden)).item<double>() < 1e-14);
  CHECK(max(abs(a.cell - b.cell)).item<double>() < 1e-14);
}

TEST_CASE("attention is causal where it should be", "[nn]") {
  const auto layer = nn::multi_head_attention(8, 2, {.is_causal = true});
  const Tensor x = randn({2, 5, 8});
  const Tensor y = layer(x);
  CHECK(y.shape() == x.shape());
  const Tensor changed = x.at({all_of_axis, 4}).set(0.0F);
  const Tensor z = layer(changed);
  CHECK(same_bits(slice(y, 1, {0, 4}), slice(z, 1, {0, 4})));
  CHECK(!same_bits(slice(y, 1, {4, 5}), slice(z, 1, {4, 5})));
  check_layer(nn::multi_head_attention(4, 2, {.is_causal = true}), values({1, 3, 4}),
              [](const auto& l, const Tensor& t) { return l(t); });
  CHECK_THROWS_WITH(nn::multi_head_attention(8, 3), Catch::Contains("divides the width"));
}
