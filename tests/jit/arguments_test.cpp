// What compile() takes: functions with default arguments, members, overloaded names, arguments in
// braces, arrays in structs, undefined tensors.
#include "jit/compile.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <array>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

struct Model {
  Variable w = parameter(ones({3}));
  [[nodiscard]] Tensor forward(const Tensor& x) const { return x * w; }
  void grow(const Tensor& by) { w += by; }
};

struct Config {
  Tensor x;
  std::array<Tensor, 2> two;
};

/// A Plan runs from call 3 on, whatever the clock says.
const CompileOptions unchecked = {.check = Check::never};

Tensor scaled(const Tensor& x, const Scalar& factor = 2.0) {
  return x * factor;
}

}  // namespace

TEST_CASE("default arguments of a function object are filled in", "[jit]") {
  const auto g =
      compile([](const Tensor& x, const Scalar& factor = 3.0) { return x * factor; }, unchecked);
  const Tensor x = arange(4, f32);
  for (int i = 0; i < 5; ++i) {
    CHECK(same_bits(g(x), x * 3.0));
    CHECK(same_bits(g(x, 5.0 + i), x * (5.0 + i)));
    CHECK(same_bits(g.eager(x), x * 3.0));
  }
  CHECK(g.explain().plan_calls >= 4);
  CHECK(same_bits(compile(scaled)(x, 2.0), x * 2.0));
}

TEST_CASE("arguments may be written in braces", "[jit]") {
  const Tensor x = arange(4, f32);
  const auto join = compile([](const std::vector<Tensor>& parts,
                               const Shape& shape) { return reshape(concat(parts), shape); },
                            unchecked);
  const auto whole = compile([](const Config& c) { return c.x + c.two[0] * c.two[1]; }, unchecked);
  for (int i = 0; i < 5; ++i) {
    CHECK(same_bits(join({x, x}, {2, 4}), reshape(concat({x, x}), {2, 4})));
    CHECK(same_bits(whole({x, {x, x}}), x + x * x));
    CHECK(same_bits(whole.eager({x, {x, x}}), x + x * x));
  }
  CHECK(join.explain().plan_calls >= 1);
  CHECK(whole.explain().plan_calls >= 1);
}

TEST_CASE("member functions are called with the object first", "[jit]") {
  const auto forward = compile(&Model::forward, unchecked);
  const auto grow = compile(&Model::grow);
  Model a;
  Model b;
  const Tensor x = arange(3, f32);
  for (int i = 0; i < 6; ++i) {
    Model& model = i % 2 == 0 ? a : b;
    const Tensor before = model.w;
    CHECK(same_bits(forward(model, x), x * before));
    grow(model, x);
    CHECK(same_bits(model.w.get(), before + x));
  }
  CHECK(forward.explain().signatures.size() == 1);
  CHECK(forward.explain().plan_calls >= 2);
}

TEST_CASE("an overloaded name is the function of one tensor", "[jit]") {
  const Tensor x = arange(4, f32);
  CHECK(same_bits(settle(compile(tanh), x), nitinol::tanh(x)));
  CHECK(same_bits(settle(compile(exp), x), nitinol::exp(x)));
}

TEST_CASE("a function without parameters to convert, noexcept, compiles like others", "[jit]") {
  const auto g = compile([](const Tensor& x) noexcept { return x + 1.0; });
  const Tensor x = arange(4, f32);
  CHECK(same_bits(settle(g, x), x + 1.0));
  CHECK(same_bits(g({x}), x + 1.0));
}

TEST_CASE("an empty function is an Error, not a crash", "[jit][errors]") {
  using Pointer = Tensor (*)(const Tensor&);
  CHECK_THROWS_WITH(compile(std::function<Tensor(const Tensor&)>()),
                    Catch::StartsWith("compile: the function to call"));
  CHECK_THROWS_WITH(compile(Pointer{}), Catch::Contains("an empty one"));
  CHECK_THROWS_WITH(compile(decltype(&Model::forward){}), Catch::Contains("an empty one"));
  CHECK_THROWS_WITH(grad(Pointer{})(ones({})), Catch::StartsWith("grad: "));
  CHECK_THROWS_WITH(hessian({}, ones({})), Catch::StartsWith("hessian: "));
  CHECK_THROWS_WITH(checkpoint(Pointer{}), Catch::StartsWith("checkpoint: "));
}

TEST_CASE("undefined tensors are arguments like others", "[jit]") {
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& c) {
    Tensor sum = a;
    if (b.is_defined()) sum += b * 2.0;
    if (c.is_defined()) sum += c * 3.0;
    return sum;
  };
  const auto g = compile(f, unchecked);
  const Tensor x = arange(4, f32);
  const Tensor y = x + 1.0;
  for (int i = 0; i < 5; ++i) {
    CHECK(same_bits(g(x, y, Tensor()), f(x, y, Tensor())));
    CHECK(same_bits(g(x, Tensor(), y), f(x, Tensor(), y)));
    CHECK(same_bits(g(x, Tensor(), Tensor()), x));
    CHECK(same_bits(g(x, y, y), f(x, y, y)));
  }
  INFO(g.explain());
  CHECK(g.explain().signatures.size() == 4);
  CHECK(g.explain().plan_calls >= 4);
}

TEST_CASE("options with undefined tensors compile", "[jit]") {
  const auto f = [](const Tensor& x, const LayerNorm& o) { return layer_norm(x, o); };
  const auto g = compile(f);
  const Tensor x = reshape(arange(12, f32), {3, 4});
  CHECK(same_bits(settle(g, x, LayerNorm{}), layer_norm(x)));
  const LayerNorm weighted = {.weight = arange(4, f32)};
  CHECK(same_bits(settle(g, x, weighted), layer_norm(x, weighted)));
}

TEST_CASE("undefined tensors are results like others", "[jit]") {
  const auto g = compile(
      [](const Tensor& x) {
        return std::tuple(Tensor(), x + 1.0, std::vector<Tensor>{x * 2.0, Tensor(), x * 3.0});
      },
      unchecked);
  const Tensor x = arange(4, f32);
  for (int i = 0; i < 6; ++i) {
    const auto [none, sum, list] = g(x);
    CHECK_FALSE(none.is_defined());
    CHECK(same_bits(sum, x + 1.0));
    CHECK(same_bits(list[0], x * 2.0));
    CHECK_FALSE(list[1].is_defined());
    CHECK(same_bits(list[2], x * 3.0));
  }
  CHECK(g.explain().plan_calls >= 1);
  const auto nothing = compile([](const Tensor&) { return Tensor(); }, unchecked);
  for (int i = 0; i < 5; ++i) CHECK_FALSE(nothing(x).is_defined());
  CHECK(nothing.explain().plan_calls >= 1);
}

TEST_CASE("a gradient that is not there yet is an undefined result", "[jit]") {
  const Variable w = parameter(ones({3}));
  const auto g = compile([w](const Tensor& x) { return std::pair(x + w, w.grad()); });
  const Tensor x = arange(3, f32);
  for (int i = 0; i < 4; ++i) CHECK_FALSE(g(x).second.is_defined());
  sum(w * x).backward();
  for (int i = 0; i < 4; ++i) CHECK(same_bits(g(x).second, x));
  w.clear_grad();
  CHECK_FALSE(g(x).second.is_defined());
}

TEST_CASE("a result that is defined in one mode only is noticed", "[jit]") {
  HostValue<bool> wanted = false;
  const auto g =
      compile([wanted](const Tensor& x) { return wanted ? std::optional(x + 1.0) : std::nullopt; });
  const auto h = compile([wanted](const Tensor& x) { return wanted ? x + 1.0 : Tensor(); });
  const Tensor x = arange(3, f32);
  for (int round = 0; round < 3; ++round) {
    for (const bool now : {true, false}) {
      wanted = now;
      for (int i = 0; i < 3; ++i) {
        CHECK(g(x).has_value() == now);
        CHECK(h(x).is_defined() == now);
      }
    }
  }
}

TEST_CASE("gradients pass by undefined tensors", "[autograd]") {
  const auto f = [](const LayerNorm& o) {
    return sum(square(layer_norm(reshape(arange(12, f32), {3, 4}), o)));
  };
  const LayerNorm gradient = grad(f)(LayerNorm{.weight = ones({4})});
  CHECK(gradient.weight.is_defined());
  CHECK_FALSE(gradient.bias.is_defined());
  const auto both = [](const std::vector<Tensor>& x) { return std::vector{x[0] * 2.0, x[0]}; };
  auto [result, pull] = vjp(both, std::vector{ones({2})});
  CHECK_THROWS_WITH(pull({ones({2})}), Catch::Contains("expected 2 defined tensors, got 1"));
}
