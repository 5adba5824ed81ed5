// Where a Plan may write a Variable's new value: into its own buffer only if that is laid out as
// the value is and nobody else sees it.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <functional>
#include <initializer_list>
#include <utility>

using namespace nitinol;
using namespace nitinol::test;

namespace {

const CompileOptions by_calls = {.name = "f", .check = Check::never};

Tensor ramp(const Shape& shape) {
  return reshape(arange(0, element_count(shape), 1, f32), shape);
}

}  // namespace

TEST_CASE("a Variable that is not read may hold a value of any layout", "[jit][plan]") {
  const Variable v(zeros({3, 4}));
  const auto f = compile(
      [&](const Tensor& x) {
        v.set(x * 2 + 1);
        return sum(x);
      },
      by_calls);
  settle(f, ramp({3, 4}));
  const Tensor x = ramp({3, 4}) - 5.0;
  // Each is the only handle to its memory.
  for (int layout = 0; layout < 4; ++layout) {
    if (layout == 0) v.set(permute(copy(ramp({4, 3})), {1, 0}));
    if (layout == 1) v.set(flip(copy(ramp({3, 4}))));
    if (layout == 2) v.set(slice(copy(ramp({3, 8})), 1, {.step = 2}));
    if (layout == 3) v.set(expand(copy(ramp({3, 1})), {3, 4}));
    static_cast<void>(f(x));
    INFO(layout);
    CHECK(same_bits(v.get(), x * 2 + 1));
  }
}

TEST_CASE("one value assigned to two Variables can change in one of them", "[jit][plan]") {
  const Variable a(zeros({5}));
  const Variable b(zeros({5}));
  const auto both = compile(
      [&](const Tensor& x) {
        a.set(a + x);
        b.set(a);
        return x * 2;
      },
      by_calls);
  const auto one = compile(
      [&](const Tensor& x) {
        a.set(a * x);
        return x * 2;
      },
      by_calls);
  Tensor expected = zeros({5});
  for (int call = 0; call < 5; ++call) {
    const Tensor x = ramp({5}) + call;
    static_cast<void>(both(x));
    expected = expected + x;
    const Tensor held = b;
    CHECK(same_bits(a.get(), expected));
    CHECK(same_bits(b.get(), expected));
    static_cast<void>(one(x));
    CHECK(same_bits(b.get(), expected));
    CHECK(same_bits(held, expected));
    expected = expected * x;
    CHECK(same_bits(a.get(), expected));
  }
}

TEST_CASE("an argument that is the Variable's own value stays what it is", "[jit][plan]") {
  const Variable w(ramp({6}));
  const auto f = compile(
      [&](const Tensor& x) {
        w.set(w * 2 + 1);
        return x - 1;
      },
      by_calls);
  Tensor expected = w;
  for (int call = 0; call < 5; ++call) {
    const Tensor argument = w;
    const Tensor result = f(argument);
    CHECK(same_bits(result, expected - 1));
    CHECK(same_bits(argument, expected));
    expected = expected * 2 + 1;
    CHECK(same_bits(w.get(), expected));
  }
}

TEST_CASE("a gradient that a call clears is not there afterwards", "[jit][plan][autograd]") {
  const Variable w = parameter(ramp({3}));
  const Variable captured = parameter(ramp({3}));
  const auto f = compile(
      [&](const Variable& p, const Tensor& x) {
        p.clear_grad();
        captured.clear_grad();
        return x * stop_gradient(p);
      },
      by_calls);
  for (int call = 0; call < 6; ++call) {
    w.set_grad(ones({3}));
    captured.set_grad(ones({3}));
    static_cast<void>(f(w, ones({3})));
    INFO("call " << call);
    CHECK_FALSE(w.grad().is_defined());
    CHECK_FALSE(captured.grad().is_defined());
  }
  INFO(f.explain());
  CHECK(f.explain().plan_calls >= 3);
}

TEST_CASE("whether a captured gradient is there selects what a call does",
          "[jit][plan][autograd]") {
  const Variable w = parameter(ramp({3}));
  const auto plain = [&](const Tensor& x) {
    const Tensor gradient = w.grad();
    return gradient.is_defined() ? x + gradient : x * 2;
  };
  const auto f = compile(plain, by_calls);
  for (int call = 0; call < 24; ++call) {
    if (call / 4 % 2 == 0)
      w.clear_grad();
    else
      w.set_grad(ramp({3}) + call);
    INFO("call " << call);
    CHECK(same_bits(f(ramp({3})), plain(ramp({3}))));
  }
}

TEST_CASE("an accuracy beside the loss leaves a training step in place", "[jit][plan]") {
  const auto report_of = [](const std::function<Tensor(const Tensor&)>& measure) {
    const nn::Linear hidden = nn::linear(20, 16), out = nn::linear(16, 4);
    const nn::Adam optimizer({hidden.weight, hidden.bias.value(), out.weight, out.bias.value()},
                             {.rate = 1e-3});
    const auto step = compile(
        [&](const Tensor& x, const Tensor& classes) {
          optimizer.zero_grad();
          const Tensor scores = out(relu(hidden(x)));
          const Tensor loss = nn::cross_entropy(scores, classes);
          loss.backward();
          optimizer.step();
          return std::pair(stop_gradient(loss), measure(stop_gradient(scores)));
        },
        by_calls);
    const Tensor x = reshape(sin(ramp({32 * 20})), {32, 20}), classes = arange(32) % 4;
    for (int call = 0; call < 4; ++call) static_cast<void>(step(x, classes));
    const Explanation explanation = step.explain();
    REQUIRE(explanation.plan_calls == 2);
    return explanation.signatures.at(0).plan;
  };
  const jit::PlanReport of_max = report_of([](const Tensor& y) { return max(y, {1}); });
  CHECK(of_max.in_place_bytes > 4000);  // of 4,848: devices differ in what they join
  for (const auto& measure : std::initializer_list<std::function<Tensor(const Tensor&)>>{
           [](const Tensor& y) { return argmax(y, 1); },
           [](const Tensor& y) { return argmin(y, 0); },
           [](const Tensor& y) {
             return sum(reshape(y, {8, 4, 2, 2}), {0, 2});
           }}) {
    const jit::PlanReport report = report_of(measure);
    CHECK(report.in_place_bytes == of_max.in_place_bytes);
    CHECK(report.result_bytes <= of_max.result_bytes + std::size_t{8} * 32);
    CHECK(report.arena_bytes <= of_max.arena_bytes + std::size_t{4} * 32 * 4);
  }
}
