// custom_gradient and checkpoint: eagerly, compiled, differentiated twice.
#include "core/backend.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <utility>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// log(1 + e^x) with a gradient that does not overflow.
const auto stable = custom_gradient([](const Tensor& x) {
  const Tensor e = exp(x);
  return std::pair(log(1 + e), [e](const Tensor& g) { return g * (1 - 1 / (1 + e)); });
});

}  // namespace

TEST_CASE("a custom gradient takes the place of the derivative", "[autograd]") {
  const auto clipped = custom_gradient([](const Tensor& x) {
    return std::pair(x * 1.0, [](const Tensor& g) { return clamp(g, -1.0, 1.0); });
  });
  const Variable w = parameter(tensor({3.0F, 0.1F}));
  sum(square(clipped(w.get()))).backward();
  CHECK(same_bits(w.grad(), tensor({1.0F, 0.2F})));
  CHECK_NOTHROW(check_gradients(stable, tensor({0.3, -2.0, 4.0}), {.order = 2}));
}

TEST_CASE("a custom gradient of several arguments", "[autograd]") {
  const auto product = custom_gradient([](const Tensor& x, const Tensor& y) {
    return std::pair(x * y, [x, y](const Tensor& g) { return std::tuple(g * y, Tensor()); });
  });
  const Variable a = parameter(tensor({3.0F}));
  const Variable b = parameter(tensor({5.0F}));
  sum(product(a.get(), b.get())).backward();
  CHECK(a.grad().item<float>() == 5.0F);
  CHECK(!b.grad().is_defined());

  const auto wrong = custom_gradient([](const Tensor& x, const Tensor& y) {
    return std::pair(x * y, [](const Tensor& g) { return g; });
  });
  const Tensor loss = sum(wrong(a.get(), b.get()));
  CHECK_THROWS_WITH(loss.backward(), Catch::Contains("custom_gradient") &&
                                         Catch::Contains("2 gradients, one for each argument"));
}

TEST_CASE("custom gradients hold in compiled functions", "[autograd][jit]") {
  const auto clipped = custom_gradient([](const Tensor& x) {
    return std::pair(x * 1.0, [](const Tensor& g) { return clamp(g, -1.0, 1.0); });
  });
  const auto f = [&](const Tensor& x) { return sum(square(clipped(x * 2.0))); };
  const auto inside = compile(grad(f));
  const auto outside = grad(compile(f));
  for (int i = 0; i < 5; ++i) {
    const Tensor x = tensor({0.1 * i, -0.2, 3.0});
    CHECK(same_bits(inside(x), grad(f)(x)));
    CHECK(same_bits(outside(x), grad(f)(x)));
  }
}

TEST_CASE("a rule that looks at data leaves a compiled function without a Plan, with the reason",
          "[autograd][jit]") {
  const auto looking = custom_gradient([](const Tensor& x) {
    return std::pair(x * 1.0,
                     [](const Tensor& g) { return g.to_vector<double>()[0] > 0 ? g : g * 2.0; });
  });
  const auto g = compile([&](const Tensor& x) { return sum(looking(x)); });
  const auto gradient = grad(g);
  for (int i = 0; i < 4; ++i) CHECK(same_bits(gradient(tensor({1.0})), tensor({1.0})));
  CHECK(g.explain().signatures.at(0).tier == without_plan());
  CHECK_THAT(g.explain().signatures.at(0).reason, Catch::Contains("looks at a tensor's elements"));
}

TEST_CASE("checkpoint computes again what it did not keep", "[autograd]") {
  const Variable w = parameter(randn({6, 6}));
  const Variable v = w.clone();
  int runs = 0;
  const auto block = [&runs](const Variable& p, const Tensor& x) {
    ++runs;
    return tanh(matmul(x, p) + rand({1, 6}));
  };
  const auto on_w = checkpoint([&](const Tensor& x) { return block(w, x); });
  manual_seed(1);
  sum(on_w(on_w(ones({2, 6})))).backward();
  CHECK(runs == 4);
  manual_seed(1);
  sum(block(v, block(v, ones({2, 6})))).backward();
  CHECK(same_bits(w.grad(), v.grad()));
}

TEST_CASE("checkpoint assigns Variables once and sees them as they were", "[autograd]") {
  const Variable count(tensor(0.0F));
  const Variable w = parameter(tensor({2.0F}));
  const auto f = checkpoint([&](const Tensor& x) {
    count.set(count + 1.0);
    return x * w * count;
  });
  const Tensor y = f(tensor({3.0F}));
  CHECK(count.get().item<float>() == 1.0F);
  count.set(tensor(100.0F));
  w.set(tensor({50.0F}));
  sum(square(y)).backward();  // d (3 w)^2 / dw = 18 w at w = 2
  CHECK(w.grad().item<float>() == 36.0F);
  CHECK(count.get().item<float>() == 100.0F);
}

TEST_CASE("checkpoint keeps less", "[autograd][host]") {
  const auto chain = [](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 20; ++i) y = sin(y);
    return y;
  };
  const Variable w = parameter(ones({100000}));
  const auto bytes = [&](const auto& f) {
    const std::size_t before = backend(Device{}).memory().in_use;
    const Tensor y = f(w.get());
    const std::size_t kept = backend(Device{}).memory().in_use - before;
    sum(y).backward();
    return kept;
  };
  const std::size_t plain = bytes(chain);
  const Tensor expected = w.grad();
  w.clear_grad();
  CHECK(bytes(checkpoint(chain)) * 10 < plain);
  CHECK(same_bits(w.grad(), expected));
}

TEST_CASE("checkpoint may be differentiated twice, and compiled", "[autograd][jit]") {
  const auto f = checkpoint([](const Tensor& x) { return sin(x) * exp(x); });
  const auto plain = [](const Tensor& x) { return sin(x) * exp(x); };
  CHECK_NOTHROW(check_gradients(f, tensor({0.3, -2.0, 1.0}), {.order = 2}));
  const auto compiled = compile(grad([&](const Tensor& x) { return sum(f(x)); }));
  const auto expected = grad([&](const Tensor& x) { return sum(plain(x)); });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = tensor({0.1 * i, 2.0});
    CHECK(same_bits(compiled(x), expected(x)));
  }
  const auto [a, b] = checkpoint([](const std::pair<Tensor, Tensor>& p) {
    return std::pair(p.first * p.second, p.second);
  })(std::pair(ones({2}), ones({2})));
  CHECK(same_bits(a, b));
}
