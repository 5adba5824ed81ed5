// grad, value_and_grad, vjp, jvp, hessian: derivatives that are known in closed form.
#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace nitinol;

namespace {

Tensor cube(const Tensor& x) {
  return sum(x * x * x);
}

}  // namespace

TEST_CASE("grad of a function of a tensor", "[autograd]") {
  const Tensor x = tensor({1.0, 2.0, -3.0});
  CHECK(same_bits(grad(cube)(x), tensor({3.0, 12.0, 27.0})));
  const auto [value, gradient] = value_and_grad(cube)(x);
  CHECK(value.item<double>() == -18.0);
  CHECK(!value.tracks_gradient());
  CHECK(same_bits(gradient, tensor({3.0, 12.0, 27.0})));
}

TEST_CASE("gradients nest", "[autograd]") {
  const Tensor x = tensor(2.0);
  const auto f = [](const Tensor& v) { return v * v * v * v; };
  CHECK(grad(f)(x).item<double>() == 32.0);
  CHECK(grad(grad(f))(x).item<double>() == 48.0);
  CHECK(grad(grad(grad(f)))(x).item<double>() == 48.0);
}

TEST_CASE("an inner gradient does not confuse its argument with the outer one", "[autograd]") {
  // d/dx x * d/dy (x + y) = d/dx x = 1 (J. Siskind, B. Pearlmutter: perturbation confusion)
  const auto f = [](const Tensor& x) {
    return x * grad([&](const Tensor& y) { return x + y; })(tensor(1.0));
  };
  CHECK(grad(f)(tensor(1.0)).item<double>() == 1.0);
  const auto g = [](const Tensor& x) {
    return x * grad([&](const Tensor& y) { return x * y; })(tensor(2.0));
  };
  CHECK(grad(g)(tensor(3.0)).item<double>() == 6.0);
}

TEST_CASE("arguments may be structs and containers; more results come along", "[autograd]") {
  struct Model {
    Tensor w;
    std::vector<Tensor> biases;
    int layers = 2;
  };
  const auto loss = [](const Model& m, const Tensor& x) {
    Tensor y = x * m.w;
    for (const Tensor& b : m.biases) y = y + b;
    return std::pair(sum(y), y);
  };
  const Model model{tensor({1.0F, 2.0F}), {tensor({1.0F}), tensor({2.0F})}};
  const Tensor x = tensor({5.0F, 7.0F});
  const auto [result, gradient] = value_and_grad(loss)(model, x);
  CHECK(same_bits(gradient.w, x));
  CHECK(same_bits(gradient.biases[1], tensor({2.0F})));
  CHECK(gradient.layers == 2);
  CHECK(same_bits(result.second, tensor({8.0F, 17.0F})));
}

TEST_CASE("vjp pulls back more than once; jvp pushes forward", "[autograd]") {
  const auto f = [](const Tensor& x) { return sin(x) * x; };
  const Tensor x = tensor({0.5, 1.0});
  const auto [value, pull] = vjp(f, x);
  const Tensor slope = sin(x) + x * cos(x);
  for (int i = 0; i < 2; ++i) {
    const Tensor seed = tensor({1.0 + i, 2.0});
    CHECK(max(abs(pull(seed) - seed * slope)).item<double>() < 1e-15);
  }
  const auto [y, tangent] = jvp(f, x, tensor({2.0, 3.0}));
  CHECK(max(abs(tangent - slope * tensor({2.0, 3.0}))).item<double>() < 1e-15);
}

TEST_CASE("the hessian of a quadratic form", "[autograd]") {
  const Tensor a = tensor({{2.0, 1.0}, {0.0, 3.0}});
  const auto f = [&](const Tensor& x) { return sum(x * matmul(a, x)); };
  CHECK(same_bits(hessian(f, tensor({1.0, -1.0})), tensor({{4.0, 1.0}, {1.0, 6.0}})));
}

TEST_CASE("gradients of what does not depend on the argument are zeros", "[autograd]") {
  CHECK(
      same_bits(grad([](const Tensor& x) { return sum(floor(x)); })(tensor({1.5})), tensor({0.0})));
  CHECK(same_bits(grad([](const Tensor&) { return tensor(1.0); })(tensor({1.5})), tensor({0.0})));
  CHECK_THROWS_AS(grad([](const Tensor& x) { return x; })(tensor({1.0, 2.0})), Error);
}

TEST_CASE("a gradient penalty reaches the parameters", "[autograd]") {
  const Variable w = parameter(tensor(3.0));
  const auto f = [&](const Tensor& x) { return w * x * x; };
  square(grad(f)(tensor(2.0))).backward();  // (2 w x)^2 = 144; by w: 8 w x^2
  CHECK(w.grad().item<double>() == 96.0);
}
