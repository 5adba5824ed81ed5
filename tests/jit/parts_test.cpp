// Ops of several results: eagerly, compiled, differentiated.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/outside_ops.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

const CompileOptions by_calls = {.name = "f", .check = Check::never};

Tensor sequence(const Shape& shape, DType dtype = f32) {
  return reshape(arange(0, element_count(shape), 1, dtype), shape);
}

/// Checks that f(x) gives the same bits by a Plan, and returns what explain() says of it.
template <class F>
Explanation check_same(const F& f, const Tensor& x) {
  const std::vector<Tensor> expected = f(x);
  const auto g = compile(f, by_calls);
  for (int call = 0; call < 4; ++call) {
    const std::vector<Tensor> results = g(x);
    REQUIRE(results.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(results[i], expected[i]));
  }
  Explanation explanation = g.explain();
  CHECK(explanation.plan_calls == 2);
  return explanation;
}

}  // namespace

TEST_CASE("an op of several results gives them all", "[jit][parts]") {
  for (const DType dtype : {boolean, i8, i64, f16, f32, f64}) {
    const Tensor x = sequence({2, 3}, i64).to(dtype);
    const auto [flat, same] = turned(transpose(x));
    CHECK(same_bits(flat, flip(reshape(transpose(x), {6}))));
    CHECK(same_bits(same, copy(transpose(x))));
  }
  CHECK(turned(zeros({0, 3})).first.shape() == Shape{0});
}

TEST_CASE("a Plan gives several results of one op", "[jit][parts]") {
  const Tensor x = sequence({4, 5});
  SECTION("both, read by kernels and as they are") {
    check_same(
        [](const Tensor& y) {
          const auto [flat, same] = turned(exp(y * 0.125));
          return std::vector{flat + 1, same, flat, sum(same * reshape(flat, {4, 5}), 1)};
        },
        x);
  }
  SECTION("views of them") {
    check_same(
        [](const Tensor& y) {
          const auto [flat, same] = turned(y);
          return std::vector{transpose(same), slice(flat, 0, Range{3, 9}),
                             matmul(same, transpose(same))};
        },
        x);
  }
  SECTION("one of them, whose op is one step that writes both") {
    const Explanation explanation =
        check_same([](const Tensor& y) { return std::vector{turned(y).second * 2}; }, x);
    CHECK(explanation.signatures.at(0).plan.steps.size() == 2);
  }
  SECTION("none: it is left out") {
    const Explanation explanation = check_same(
        [](const Tensor& y) {
          static_cast<void>(turned(y));
          return std::vector{y * 2};
        },
        x);
    CHECK(explanation.signatures.at(0).plan.steps.size() == 1);
  }
  SECTION("the same twice is done once") {
    const Explanation explanation = check_same(
        [](const Tensor& y) {
          return std::vector{turned(y).first, turned(y).first + turned(y).first};
        },
        x);
    CHECK(explanation.signatures.at(0).plan.steps.size() == 2);
  }
  SECTION("of a part of another, and of nothing") {
    check_same(
        [](const Tensor& y) {
          const auto [flat, same] = turned(turned(y).first);
          return std::vector{flat, same, turned(slice(y, 0, Range{0, 0})).second};
        },
        x);
  }
  SECTION("into a Variable") {
    const Variable v(zeros({4, 5}));
    const auto f = compile(
        [&](const Tensor& y) {
          const auto [flat, same] = turned(v.get() + y);
          v.set(same);
          return flat;
        },
        by_calls);
    for (int call = 1; call < 5; ++call) {
      CHECK(same_bits(f(x), flip(reshape(x * call, {20}))));
      CHECK(same_bits(v.get(), x * call));
    }
    CHECK(f.explain().plan_calls == 2);
  }
}

TEST_CASE("gradients go back through several results", "[jit][parts]") {
  const Tensor x = sequence({4, 5}) * 0.25;
  const Tensor weights = sequence({20});
  const auto check = [&](const auto& loss, const Tensor& expected) {
    CHECK(same_bits(grad(loss)(x), expected));
    const auto inside = compile([&](const Tensor& y) { return grad(loss)(y); }, by_calls);
    const auto outside = compile(loss, by_calls);
    for (int call = 0; call < 4; ++call) {
      CHECK(same_bits(inside(x), expected));
      CHECK(same_bits(grad(outside)(x), expected));
      const Variable p = parameter(x);
      outside(p.get()).backward();
      CHECK(same_bits(p.grad(), expected));
    }
    CHECK(inside.explain().plan_calls == 2);
    CHECK(outside.explain().signatures.at(0).tier == Tier::traced);
  };
  SECTION("both") {
    check(
        [&](const Tensor& y) {
          const auto [flat, same] = turned(y);
          return sum(flat * weights) + sum(square(same));
        },
        reshape(flip(weights), {4, 5}) + x * 2);
  }
  SECTION("the first, the second") {
    check([&](const Tensor& y) { return sum(turned(y).first * weights); },
          reshape(flip(weights), {4, 5}));
    check([&](const Tensor& y) { return sum(square(turned(y).second)); }, x * 2);
  }
  SECTION("of second order") {
    const auto loss = [&](const Tensor& y) {
      const auto [flat, same] = turned(y);
      return sum(flat * flat * flat) + sum(same);
    };
    const auto second = grad([&](const Tensor& y) { return sum(grad(loss)(y)); });
    CHECK(same_bits(second(x), x * 6));
  }
  SECTION("of a checkpoint") {
    check(
        [&](const Tensor& y) {
          return checkpoint([&](const Tensor& z) {
            const auto [flat, same] = turned(tanh(z));
            return sum(flat * weights) + sum(square(same));
          })(y);
        },
        grad([&](const Tensor& z) {
          const auto [flat, same] = turned(tanh(z));
          return sum(flat * weights) + sum(square(same));
        })(x));
  }
}

TEST_CASE("a recording that takes another result is another one", "[jit][parts]") {
  bool takes_second = false;
  const auto f = compile([&](const Tensor& x) {
    const auto [flat, same] = turned(x);
    return takes_second ? reshape(same, {6}) : flat;
  });
  const Tensor x = sequence({2, 3});
  CHECK(same_bits(f(x), flip(reshape(x, {6}))));
  takes_second = true;
  CHECK(same_bits(f(x), reshape(x, {6})));
  CHECK(f.explain().signatures.at(0).tier != Tier::traced);
  for (int call = 0; call < 3; ++call) CHECK(same_bits(f(x), reshape(x, {6})));
}
