// Differentiation inside, around and across compile(): the same bits as eager.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// A small network with everything that a training step does.
struct Net {
  Variable w1, b1, w2, b2;
  Variable m1, m2;  ///< momentum of the weights

  [[nodiscard]] Tensor loss(const Tensor& x, const Tensor& y) const {
    const Tensor hidden = tanh(matmul(x, w1) + b1);
    const Tensor logits = matmul(hidden, w2) + b2;
    return -mean(sum(one_hot(y, 4) * log_softmax(logits), {1}));
  }

  [[nodiscard]] Tensor step(const Tensor& x, const Tensor& y, const Scalar& rate) const {
    for (const Variable& p : {w1, b1, w2, b2}) p.clear_grad();
    const Tensor value = loss(x, y);
    value.backward();
    m1.set(m1 * 0.9 + w1.grad());
    m2.set(m2 * 0.9 + w2.grad());
    w1.set(w1 - rate * m1);
    b1.set(b1 - rate * b1.grad());
    w2.set(w2 - rate * m2);
    b2.set(b2 - rate * b2.grad());
    return stop_gradient(value);
  }
};

Net net_of(uint64_t seed) {
  manual_seed(seed);
  return {.w1 = parameter(randn({8, 16}) * 0.3),
          .b1 = parameter(zeros({16})),
          .w2 = parameter(randn({16, 4}) * 0.3),
          .b2 = parameter(zeros({4})),
          .m1 = Variable(zeros({8, 16})),
          .m2 = Variable(zeros({16, 4}))};
}

Tensor classes(int64_t n) {
  return arange(n) % 4;
}

}  // namespace

TEST_CASE("a training step compiles: backward and update in one Plan, the same bits",
          "[autograd][jit]") {
  const Net eager = net_of(1);
  const Net compiled = net_of(1);
  const auto step = compile([&](const Tensor& x, const Tensor& y,
                                const Scalar& rate) { return compiled.step(x, y, rate); },
                            {.check = Check::never});  // which no race turns eager
  manual_seed(2);
  const Tensor y = classes(12);
  for (int i = 0; i < 100; ++i) {
    const Tensor x = randn({12, 8});
    const double rate = 0.1 / (1 + i);
    const Tensor expected = eager.step(x, y, rate);
    REQUIRE(same_bits(step(x, y, rate), expected));
    REQUIRE(same_bits(compiled.w1.get(), eager.w1.get()));
    REQUIRE(same_bits(compiled.w2.get(), eager.w2.get()));
    REQUIRE(same_bits(compiled.b1.grad(), eager.b1.grad()));
  }
  INFO(step.explain());
  CHECK(step.explain().plan_calls > 80);
}

TEST_CASE("a model given as argument trains compiled", "[autograd][jit]") {
  const Net eager = net_of(3);
  const Net compiled = net_of(3);
  const auto step = compile(
      [](const Net& net, const Tensor& x, const Tensor& y) { return net.step(x, y, 0.05); });
  manual_seed(4);
  const Tensor y = classes(5);
  for (int i = 0; i < 10; ++i) {
    const Tensor x = randn({5, 8});
    REQUIRE(same_bits(step(compiled, x, y), eager.step(x, y, 0.05)));
    REQUIRE(same_bits(compiled.w2.get(), eager.w2.get()));
  }
  CHECK(step.explain().plan_calls >= 5);
}

TEST_CASE("gradients gather over compiled calls", "[autograd][jit]") {
  const Variable w = parameter(tensor({1.0F, -2.0F}));
  const Variable v = parameter(tensor({1.0F, -2.0F}));
  const auto f = [](const Variable& p, const Tensor& x) {
    const Tensor loss = sum(square(p * x));
    loss.backward();
    return stop_gradient(loss);
  };
  const auto g = compile(f);
  for (int i = 0; i < 9; ++i) {
    const Tensor x = tensor({0.1F * static_cast<float>(i), 3.0F});
    REQUIRE(same_bits(g(w, x), f(v, x)));
    REQUIRE(same_bits(w.grad(), v.grad()));
    if (i == 5) {
      w.clear_grad();
      v.clear_grad();
    }
  }
  CHECK(g.explain().plan_calls >= 3);
}

TEST_CASE("a step that throws leaves gradients as they were", "[autograd][jit]") {
  const Variable w = parameter(tensor({1.0F, -2.0F}));
  const auto g = compile([&](const Tensor& x, const Tensor& rows) {
    const Tensor loss = sum(square(w * x));
    loss.backward();
    return take(x, rows);
  });
  const Tensor x = ones({2});
  for (int i = 0; i < 4; ++i) g(x, tensor({0}));
  const Tensor before = w.grad();
  CHECK_THROWS_AS(g(x, tensor({5})), Error);
  CHECK(same_bits(w.grad(), before));
}

TEST_CASE("compile(grad(f)) gives eager's bits", "[autograd][jit]") {
  const auto f = [](const Tensor& x) { return sum(sin(x) * x) + sum(square(x)); };
  const auto g = compile(grad(f));
  const auto twice = compile(grad([f](const Tensor& x) { return sum(square(grad(f)(x))); }));
  for (int i = 0; i < 6; ++i) {
    const Tensor x = tensor({0.3, -1.2 + i, 2.5});
    CHECK(same_bits(g(x), grad(f)(x)));
    CHECK(same_bits(twice(x), grad([f](const Tensor& z) { return sum(square(grad(f)(z))); })(x)));
  }
  CHECK(g.explain().plan_calls >= 3);
  CHECK(twice.explain().plan_calls >= 3);
}

TEST_CASE("grad(compile(f)) gives eager's bits", "[autograd][jit]") {
  const auto f = [](const Tensor& x) { return sum(sin(x) * x) + sum(square(x)); };
  const auto g = compile(f);
  for (int i = 0; i < 8; ++i) {
    const Tensor x = tensor({0.3, -1.2 + i, 2.5});
    CHECK(same_bits(grad(g)(x), grad(f)(x)));
    CHECK(same_bits(hessian(g, x), hessian(f, x)));
    CHECK(same_bits(jvp(g, x, x).second, jvp(f, x, x).second));
    const auto pull = vjp(g, x).second;
    CHECK(same_bits(pull(tensor(2.0)), vjp(f, x).second(tensor(2.0))));
  }
  CHECK(g.explain().plan_calls > 8);
}

TEST_CASE("a step that has gone back returns a loss that says so", "[autograd][jit]") {
  const Variable w = parameter(ones({3}));
  const auto step = compile([&](const Tensor& x) {
    const Tensor loss = sum(square(w * x));
    loss.backward();
    return std::pair(loss, x);
  });
  for (int i = 0; i < 9; ++i) {
    const auto [loss, x] = step(ones({3}));
    CHECK(loss.tracks_gradient());
    CHECK_FALSE(x.tracks_gradient());
    CHECK_THROWS_WITH(loss.backward(), Catch::Contains("the tape of sum was freed by an earlier"));
    CHECK_THROWS_WITH((loss * 2).backward(), Catch::Contains("the tape of sum was freed"));
  }
  CHECK(step.explain().plan_calls >= 4);
}

TEST_CASE("a compiled model is one node of the tape", "[autograd][jit]") {
  const Net a = net_of(5);
  const Net b = net_of(5);
  const auto f = [](const Net& net, const Tensor& x, const Tensor& y) { return net.loss(x, y); };
  const auto g = compile(f);
  manual_seed(6);
  const Tensor y = classes(9);
  for (int i = 0; i < 9; ++i) {
    const Tensor x = randn({9, 8});
    const Tensor loss = g(a, x, y);
    const Tensor expected = f(b, x, y);
    REQUIRE(same_bits(loss, expected));
    (loss * 0.5).backward();
    (expected * 0.5).backward();
    for (const auto& [p, q] : {std::pair(a.w1, b.w1), {a.b1, b.b1}, {a.w2, b.w2}, {a.b2, b.b2}}) {
      REQUIRE(same_bits(p.grad(), q.grad()));
      if (i % 3 == 2) {
        p.clear_grad();
        q.clear_grad();
      }
    }
    if (i > 4) CHECK_THROWS_WITH(loss.backward(), Catch::Contains("freed"));
  }
  const Explanation explanation = g.explain();
  CHECK(explanation.plan_calls >= 4);
  CHECK(explanation.eager_calls == 0);
  REQUIRE(explanation.signatures.back().backward);
  CHECK(explanation.signatures.back().backward->steps.size() >= 4);
  CHECK_THAT(to_string(explanation), Catch::Contains("backward: "));
}

TEST_CASE("gradients from inside and outside a compiled function add up in eager's order",
          "[autograd][jit]") {
  const auto f = [](const Variable& w, const Tensor& x) {
    return std::pair(sin(w * x) * w + w * 0.3, x * w);
  };
  const auto g = compile(f);
  const Variable a = parameter(tensor({1.1F, -0.7F, 3.3F}));
  const Variable b = a.clone();
  for (int i = 0; i < 6; ++i) {
    const auto through = [&](const Variable& w, const auto& function) {
      const Tensor x = tensor({0.1F, 0.7F, -0.4F + static_cast<float>(i)}) * w;
      const auto [first, second] = function(w, x);
      return sum(first * w * x) + sum(i % 2 == 0 ? first : second * second);
    };
    through(a, g).backward();
    through(b, f).backward();
    REQUIRE(same_bits(a.grad(), b.grad()));
  }
  CHECK(g.explain().plan_calls >= 2);
}

TEST_CASE("results that nothing uses bring no gradient", "[autograd][jit]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    return std::tuple(exp(x) * y, log(x), stop_gradient(x) * y, x);
  };
  const auto g = compile(f);
  const Variable w = parameter(tensor({0.0F, 2.0F}));
  const Variable v = w.clone();
  for (int i = 0; i < 6; ++i) {
    const auto use = [&](const Variable& p, const auto& function) {
      const Tensor y = p * 3.0;
      const auto [a, b, c, d] = function(p.get() * 1.0, y);
      CHECK(a.tracks_gradient());
      (sum(a) + sum(c) * 2.0 + sum(d)).backward();  // log is infinite at 0, and unused
    };
    use(w, g);
    use(v, f);
    REQUIRE(same_bits(w.grad(), v.grad()));
  }
  CHECK(g.explain().plan_calls >= 3);
}

TEST_CASE("a captured tensor that tracks gradients leaves the function eager, with the reason",
          "[autograd][jit]") {
  const Variable w = parameter(tensor({1.0F, 2.0F}));
  const Tensor scaled = w * 2.0;
  const auto g = compile([&](const Tensor& x) { return sum(x * scaled); });
  for (int i = 0; i < 3; ++i) static_cast<void>(g(ones({2})));
  CHECK_THAT(g.explain().signatures.at(0).reason,
             Catch::Contains("captured tensor float32[2] tracks gradients"));
  g(ones({2})).backward();
  CHECK(same_bits(w.grad(), tensor({2.0F, 2.0F})));
}
