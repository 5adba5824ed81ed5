// Autocast and LossScale: which dtype ops compute in, that it is part of Plans, and that steps
// whose gradients overflow are left out.
#include "nn/autocast.h"

#include "autograd/custom.h"
#include "autograd/gradient.h"
#include "core/error.h"
#include "eager/ops/ops.h"
#include "jit/compile.h"
#include "nn/attention.h"
#include "nn/convolutions.h"
#include "nn/layers.h"
#include "nn/loss_scale.h"
#include "nn/losses.h"
#include "nn/module.h"
#include "nn/optimizers.h"
#include "nn/recurrent.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <thread>
#include <vector>

namespace nitinol::autocast_test {
namespace {

Tensor numbers(const Shape& shape, DType dtype = f32, uint64_t seed = 1) {
  return randn(shape, dtype, Generator(seed));
}

TEST_CASE("autocast: products are computed in its dtype", "[nn][autocast]") {
  const Tensor x = numbers({3, 4}), w = numbers({4, 5}, f32, 2), bias = numbers({5}, f32, 3);
  const Tensor images = numbers({2, 3, 6, 6}), kernel = numbers({4, 3, 3, 3}, f32, 2);
  for (const DType dtype : {bf16, f16}) {
    CAPTURE(name_of(dtype));
    const nn::Autocast scope(dtype);
    const Tensor product = matmul(x, w);
    CHECK(product.dtype() == dtype);
    CHECK(same_bits(product, matmul(cast(x, dtype), cast(w, dtype))));
    CHECK(matmul(cast(x, dtype), w).dtype() == dtype);
    CHECK(einsum("ij,jk->ik", {x, w}).dtype() == dtype);
    CHECK(einsum("ij->i", {x}).dtype() == f32);
    CHECK(conv2d(images, kernel).dtype() == dtype);
    CHECK(same_bits(conv2d(images, kernel), conv2d(cast(images, dtype), cast(kernel, dtype))));
    CHECK(conv_transpose2d(numbers({2, 4, 4, 4}), kernel).dtype() == dtype);
    CHECK(conv1d(numbers({2, 3, 6}), numbers({4, 3, 3})).dtype() == dtype);
    // Biases follow.
    const Tensor shifted = conv2d(images, kernel, numbers({4}));
    CHECK(shifted.dtype() == dtype);
    const nn::Linear linear = nn::linear(4, 5);
    CHECK(linear(x).dtype() == dtype);
    // Others are left alone.
    CHECK(matmul(cast(x, f64), w).dtype() == f64);
    CHECK(matmul(cast(x, i32), cast(w, i32)).dtype() == i32);
    CHECK((x + 1).dtype() == f32);
    CHECK((product + x[0][0]).dtype() == f32);
    CHECK(relu(product).dtype() == dtype);
  }
  CHECK(matmul(x, w).dtype() == f32);
}

TEST_CASE("autocast: what magnifies errors is computed in float32", "[nn][autocast]") {
  const Tensor x = cast(abs(numbers({3, 4})) + 0.5, bf16);
  const Tensor wide = cast(x, f32);
  const auto is_full = [&](auto f) {
    const Tensor expected = f(wide);
    const nn::Autocast scope(bf16);
    const Tensor got = f(x);
    CHECK(got.dtype() == f32);
    CHECK(same_bits(got, expected));
  };
  is_full([](const Tensor& t) { return exp(t); });
  is_full([](const Tensor& t) { return log(t); });
  is_full([](const Tensor& t) { return pow(t, 0.1); });
  is_full([](const Tensor& t) { return pow(t, t); });
  is_full([](const Tensor& t) { return pow(0.1, t); });
  is_full([](const Tensor& t) { return reciprocal(t); });
  is_full([](const Tensor& t) { return softplus(t); });
  is_full([](const Tensor& t) { return sum(t); });
  is_full([](const Tensor& t) { return mean(t, 1); });
  is_full([](const Tensor& t) { return stddev(t, 0); });
  is_full([](const Tensor& t) { return cumsum(t, 1); });
  is_full([](const Tensor& t) { return softmax(t); });
  is_full([](const Tensor& t) { return log_softmax(t); });
  is_full([](const Tensor& t) { return logsumexp(t, 1); });
  is_full([](const Tensor& t) { return vector_norm(t); });
  is_full([](const Tensor& t) { return nn::mse_loss(t, t * 2); });
  is_full([](const Tensor& t) { return nn::cross_entropy(t, tensor({0, 3, 1})); });
  is_full([](const Tensor& t) {
    return nn::cross_entropy(t, tensor({0, 3, 1}), {.reduction = nn::Reduction::none});
  });
  const nn::Autocast scope(bf16);
  CHECK(max(x).dtype() == bf16);
  CHECK(exp(cast(x, f64)).dtype() == f64);
}

TEST_CASE("autocast: normalisations give the dtype of what they normalise", "[nn][autocast]") {
  const Tensor x = cast(numbers({4, 6}), bf16), images = cast(numbers({2, 6, 3, 3}), bf16);
  const auto is_low = [](const Tensor& y) { return y.dtype() == bf16; };
  for (const DType dtype : {bf16, f32}) {  // with a scope and without one
    const nn::Autocast scope(dtype);
    CHECK(is_low(nn::layer_norm(6)(x)));
    CHECK(is_low(nn::rms_norm(6)(x)));
    CHECK(is_low(nn::group_norm(2, 6)(images)));
    nn::BatchNorm norm = nn::batch_norm(6);
    CHECK(is_low(norm(images)));
    CHECK(norm.running_mean.dtype() == f32);
    norm.training = false;
    CHECK(is_low(norm(images)));
  }
}

TEST_CASE("autocast: scopes nest, end, and belong to a thread", "[nn][autocast]") {
  const Tensor x = numbers({2, 2});
  const auto product = [&] { return matmul(x, x).dtype(); };
  {
    const nn::Autocast scope(bf16);
    {
      const nn::Autocast inner(f16);
      CHECK(product() == f16);
    }
    {
      const nn::Autocast inner(f32);
      CHECK(product() == f32);
    }
    CHECK(product() == bf16);
    DType other = bf16;
    std::thread([&] { other = product(); }).join();
    CHECK(other == f32);
  }
  CHECK(product() == f32);
  for (const DType dtype : {f64, i32, boolean}) {
    CHECK_THROWS_AS(nn::Autocast(dtype), Error);
  }
  CHECK(product() == f32);
}

TEST_CASE("autocast: gradients have the dtypes of what they belong to", "[nn][autocast]") {
  const Variable w = parameter(numbers({4, 4}));
  const Tensor x = numbers({3, 4});
  const auto loss = [&] { return sum(tanh(matmul(matmul(x, w), w))); };
  {
    Tensor inside, outside;
    {
      const nn::Autocast scope(bf16);
      inside = loss();
      w.clear_grad();
      inside.backward();
    }
    const Tensor first = w.grad();
    CHECK(first.dtype() == f32);
    {
      const nn::Autocast scope(bf16);
      outside = loss();
    }
    w.clear_grad();
    outside.backward();  // no scope is there: the same
    CHECK(same_bits(w.grad(), first));
  }
  // As if written by hand.
  const auto by_hand = [&] {
    const Tensor low = cast(w, bf16);
    return sum(cast(tanh(matmul(matmul(cast(x, bf16), low), low)), f32));
  };
  const auto gradient_of = [&](const auto& f) {
    w.clear_grad();
    f().backward();
    return w.grad();
  };
  const Tensor expected = gradient_of(by_hand);
  const Tensor got = gradient_of([&] {
    const nn::Autocast scope(bf16);
    return loss();
  });
  // Each use of w is rounded apart: gradients meet in float32, not in bfloat16.
  CHECK(max(abs(got - expected)).item<float>() < 0.1F);
}

TEST_CASE("autocast: what was computed without it is differentiated without it", "[nn][autocast]") {
  const Variable w = parameter(numbers({4, 4}));
  const Tensor x = numbers({3, 4});
  const auto gradient = [&](bool is_inside) {
    w.clear_grad();
    const Tensor loss = sum(square(matmul(x, w)));
    const nn::Autocast scope(is_inside ? bf16 : f32);
    loss.backward();
    return w.grad();
  };
  CHECK(same_bits(gradient(true), gradient(false)));
  // So are optimizers, and what is made of matrix products within them.
  const auto moved = [&](bool is_inside) {
    const Variable p = parameter(numbers({4, 4}));
    const nn::Lbfgs optimizer({p}, {.rate = 0.1});
    const nn::Autocast scope(is_inside ? bf16 : f32);
    for (int i = 0; i < 3; ++i) {
      p.set_grad(numbers({4, 4}, f32, static_cast<uint64_t>(i)));
      optimizer.step();
    }
    return p.get();
  };
  CHECK(same_bits(moved(true), moved(false)));
}

TEST_CASE("autocast: checkpoint() computes again what it computed", "[nn][autocast]") {
  const Variable w = parameter(numbers({8, 8}));
  const Tensor x = numbers({4, 8});
  const auto f = [&](const Tensor& t) { return tanh(matmul(t, w)); };
  const auto gradient = [&](const auto& of) {
    w.clear_grad();
    Tensor loss;
    {
      const nn::Autocast scope(bf16);
      loss = sum(of(x));
    }
    loss.backward();
    return w.grad();
  };
  CHECK(same_bits(gradient(f), gradient(checkpoint(f))));
}

struct Net {
  nn::Conv2d conv = nn::conv2d(1, 4, 3);
  nn::BatchNorm norm = nn::batch_norm(4);
  nn::Linear first = nn::linear(64, 16), last = nn::linear(16, 3);
  Tensor operator()(const Tensor& x) const {
    const Tensor images = relu(norm(conv(x)));
    return last(gelu(first(flatten(images, 1))));
  }
};

/// A model that takes `steps` steps of Adam; its losses and parameters.
std::vector<Tensor> trained(bool is_compiled, DType dtype, int steps) {
  manual_seed(7);
  Net net;
  const nn::Adam optimizer(nn::parameters(net), {.rate = 0.01});
  const nn::LossScale scale({.initial = 1024});
  const auto plain = [&](const Tensor& x, const Tensor& y) {
    optimizer.zero_grad();
    Tensor loss;
    {
      const nn::Autocast scope(dtype);
      loss = nn::cross_entropy(net(x), y);
    }
    scale(loss).backward();
    const Tensor is_finite = scale.unscale(nn::parameters(net));
    nn::clip_gradient_norm(nn::parameters(net), 1);
    optimizer.step(is_finite);
    return loss;
  };
  const auto step = compile(plain);
  std::vector<Tensor> results;
  for (int i = 0; i < steps; ++i) {
    const Tensor x = numbers({8, 1, 6, 6}, f32, static_cast<uint64_t>(i % 2 + 1));
    const Tensor y = randint(0, 3, {8}, i64, Generator(static_cast<uint64_t>(i % 2 + 5)));
    results.push_back(is_compiled ? step(x, y) : plain(x, y));
  }
  if (is_compiled) {
    const Explanation explanation = step.explain();
    REQUIRE(explanation.signatures.size() == 1);
    CHECK(explanation.signatures[0].tier == Tier::traced);
    CHECK(explanation.signatures[0].plan_calls > 0);
  }
  for (const Variable& variable : nn::parameters(net)) results.push_back(variable);
  return results;
}

TEST_CASE("autocast: a training step has the same bits compiled, and learns", "[nn][autocast]") {
  for (const DType dtype : {bf16, f16}) {
    CAPTURE(name_of(dtype));
    constexpr int steps = 12;
    const std::vector<Tensor> eager = trained(false, dtype, steps),
                              compiled = trained(true, dtype, steps);
    for (std::size_t i = 0; i < eager.size(); ++i) {
      CAPTURE(i);
      CHECK(same_bits(eager[i], compiled[i]));
    }
    CHECK(eager[0].dtype() == f32);
    CHECK(eager[steps - 1].item<float>() < 0.7F * eager[0].item<float>());
  }
}

TEST_CASE("autocast: a compiled function has a Plan for each dtype around it", "[nn][autocast]") {
  const Tensor x = numbers({4, 4});
  const auto f = compile([](const Tensor& t) { return matmul(t, t) + 1; });
  for (int i = 0; i < 4; ++i) {
    CHECK(f(x).dtype() == f32);
    const nn::Autocast scope(bf16);
    CHECK(f(x).dtype() == bf16);
  }
  const Explanation explanation = f.explain();
  CHECK(explanation.signatures.size() == 2);
  CHECK(explanation.signatures.at(1).cause == "autocast's dtype is bfloat16, was float32");
}

TEST_CASE("autocast: an option of compile()", "[nn][autocast]") {
  const Tensor x = numbers({4, 4});
  const auto f = compile([](const Tensor& t) { return matmul(t, t); }, {.autocast = bf16});
  for (int i = 0; i < 4; ++i) CHECK(f(x).dtype() == bf16);
  CHECK(f.eager(x).dtype() == bf16);
  CHECK(same_bits(f.eager(x), f(x)));
  const auto around = compile([&](const Tensor& t) { return f(t); });
  for (int i = 0; i < 4; ++i) CHECK(around(x).dtype() == bf16);
  CHECK(matmul(x, x).dtype() == f32);
  CHECK_THROWS_AS(compile([](const Tensor& t) { return t; }, {.autocast = f64}), Error);
}

TEST_CASE("autocast: in segments, too", "[nn][autocast]") {
  const Tensor x = numbers({4, 4});
  const auto plain = [](const Tensor& t) {
    const nn::Autocast scope(bf16);
    Tensor y = matmul(t, t);
    if (sum(y).item<float>() > 0) y = matmul(y, t);
    return exp(y);
  };
  const auto f = compile(plain);
  const Tensor expected = plain(x);
  CHECK(expected.dtype() == f32);
  for (int i = 0; i < 6; ++i) CHECK(same_bits(f(x), expected));
}

// ---- LossScale, Optimizer::step(when)

TEST_CASE("LossScale: halves on overflow and leaves the step out", "[nn][autocast]") {
  const auto run = [](bool is_compiled) {
    const Variable w = parameter(tensor({1.0, 2.0}, f32));
    const nn::Adam optimizer({w}, {.rate = 0.1, .weight_decay = 0.1});
    const nn::LossScale scale({.initial = 8, .interval = 2});
    const auto plain = [&](const Tensor& x) {
      optimizer.zero_grad();
      scale(sum(w * x)).backward();
      const Tensor is_finite = scale.unscale({w});
      optimizer.step(is_finite);
      return std::pair(is_finite, w.grad());
    };
    const auto step = compile(plain);
    const float infinity = std::numeric_limits<float>::infinity();
    const float scales[] = {8, 16, 8, 4, 4, 8, 4};
    const float factors[] = {1, 1, infinity, std::nanf(""), 1, 1, -infinity};
    std::vector<Tensor> states;
    for (std::size_t i = 0; i < 7; ++i) {
      CAPTURE(i);
      std::vector<Tensor> before;
      for (const nn::NamedVariable& one : nn::named_variables(optimizer))
        before.push_back(one.variable);
      const Tensor value = w;
      const auto [is_finite, gradient] =
          is_compiled ? step(full({2}, factors[i], f32)) : plain(full({2}, factors[i], f32));
      const bool is_fine = std::isfinite(factors[i]);
      CHECK(is_finite.item<bool>() == is_fine);
      if (is_fine) CHECK(gradient.to_vector<float>() == std::vector<float>{1, 1});
      CHECK(scale.value().item<float>() == scales[i]);
      CHECK(same_bits(value, w) == !is_fine);
      std::size_t k = 0;
      for (const nn::NamedVariable& one : nn::named_variables(optimizer)) {
        CAPTURE(one.name);
        const bool is_rate = one.name.find("rate") != std::string::npos;
        CHECK(same_bits(before[k++], one.variable) == (!is_fine || is_rate));
        states.push_back(one.variable);
      }
    }
    if (is_compiled) CHECK(step.explain().signatures[0].tier == Tier::traced);
    return states;
  };
  const std::vector<Tensor> eager = run(false), compiled = run(true);
  for (std::size_t i = 0; i < eager.size(); ++i) CHECK(same_bits(eager[i], compiled[i]));
}

TEST_CASE("LossScale: stays a number that can be divided by", "[nn][autocast]") {
  const Variable w = parameter(tensor({1.0}, f32));
  const auto scale_after = [&](double first, double gradient) {
    const nn::LossScale scale({.initial = first, .interval = 1});
    for (int i = 0; i < 3; ++i) {
      w.set_grad(full({1}, gradient, f32));
      static_cast<void>(scale.unscale({w}));
    }
    return scale.value().item<float>();
  };
  CHECK(scale_after(0x1p126, 1) == 0x1p127F);
  CHECK(scale_after(0x1p-125, std::nan("")) == 0x1p-126F);
}

TEST_CASE("LossScale and step(when): what makes no sense", "[nn][autocast]") {
  CHECK_THROWS_AS(nn::LossScale({.initial = 0}), Error);
  CHECK_THROWS_AS(nn::LossScale({.growth = 0.5}), Error);
  CHECK_THROWS_AS(nn::LossScale({.growth = std::nan("")}), Error);
  CHECK_THROWS_AS(nn::LossScale({.backoff = 0}), Error);
  CHECK_THROWS_AS(nn::LossScale({.backoff = 2}), Error);
  CHECK_THROWS_AS(nn::LossScale({.interval = 0}), Error);
  const Variable w = parameter(tensor({1.0}, f32));
  const nn::LossScale scale;
  CHECK_THROWS_AS(scale.unscale({w}), Error);
  CHECK_THROWS_AS(scale.unscale({}), Error);
  w.set_grad(tensor({1.0}, f32));
  const nn::Sgd optimizer({w}, {.rate = 0.5});
  CHECK_THROWS_AS(optimizer.step(tensor(1.0)), Error);
  CHECK_THROWS_AS(optimizer.step(tensor({true})), Error);
  CHECK_THROWS_AS(optimizer.step(Tensor()), Error);
  CHECK(w.get().to_vector<float>() == std::vector<float>{1});
  optimizer.step(tensor(false));
  CHECK(w.get().to_vector<float>() == std::vector<float>{1});
  optimizer.step(tensor(true));
  CHECK(w.get().to_vector<float>() == std::vector<float>{0.5F});
}

}  // namespace
}  // namespace nitinol::autocast_test
