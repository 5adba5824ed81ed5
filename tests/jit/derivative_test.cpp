// A compiled function as one node of the tape: gradients of some of its results, of inputs used
// several times, beyond one block of a reduction, and of gradients.
#include "jit/derivative.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <functional>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using Both = std::pair<Tensor, Tensor>;

Tensor wave(const Shape& shape, double step = 0.37) {
  return cast(sin(reshape(arange(0, element_count(shape), 1, f64), shape) * step), f32);
}

/// Checks that gradients through compile(f) have the bits of those through f: call after call, with
/// other values, first recorded and then by Plans.
template <class F, class Loss>
void check_through(const F& f, const Loss& loss, const Shape& shape) {
  // Recorded again by the number of calls alone: on a busy machine six calls take long.
  const auto g = compile(f, {.check_interval = std::chrono::milliseconds(0)});
  for (int call = 0; call < 6; ++call) {
    const Tensor x = wave(shape, 0.3 + call);
    const Tensor y = wave(shape, 0.7 + call);
    const auto derivative = [&](const auto& function) {
      return grad([&](const std::vector<Tensor>& in) { return loss(function(in[0], in[1]), in); })(
          std::vector<Tensor>{x, y});
    };
    const std::vector<Tensor> expected = derivative(f);
    const std::vector<Tensor> got = derivative(g);
    INFO("call " << call);
    CHECK(same_bits(got[0], expected[0]));
    CHECK(same_bits(got[1], expected[1]));
  }
  INFO(g.explain());
  CHECK(g.explain().plan_calls >= 2);
}

Both two_results(const Tensor& x, const Tensor& y) {
  const Tensor t = tanh(x * y);
  return {t * x, sum(exp(t) / (y * y + 1), {-1})};
}

}  // namespace

TEST_CASE("gradients of any of the results", "[jit][derivative]") {
  using Losses = std::vector<std::function<Tensor(const Both&, const std::vector<Tensor>&)>>;
  const Losses losses = {
      [](const Both& r, const auto&) { return sum(r.first); },
      [](const Both& r, const auto&) { return sum(r.second); },
      [](const Both& r, const auto&) { return sum(r.first) + sum(r.second * r.second); }};
  for (const Shape& shape : {Shape{3, 5}, Shape{7, 1200}, Shape{1025}}) {
    for (const auto& loss : losses) check_through(two_results, loss, shape);
  }
}

TEST_CASE("one function serves callers that ask for different results", "[jit][derivative]") {
  const auto g = compile(two_results);
  for (int call = 0; call < 9; ++call) {
    const Tensor x = wave({4, 6}, 1.1 + call);
    const auto derivative = [&](const auto& function) {
      return grad([&](const Tensor& in) {
        const Both r = function(in, in);
        return call % 3 == 0 ? sum(r.first) : call % 3 == 1 ? sum(r.second) : mean(r.first) * 2;
      })(x);
    };
    INFO("call " << call);
    CHECK(same_bits(derivative(g), derivative(two_results)));
  }
}

TEST_CASE("gradients that arrived before are added in eager's order", "[jit][derivative]") {
  const auto f = [](const Tensor& x, const Tensor& y) { return x * y + x * 0.1 + sin(x); };
  // x is read by the function and after it, y before it and by it.
  const auto loss = [](const Tensor& r, const std::vector<Tensor>& in) {
    return sum(r * in[0] * 0.3) + sum(exp(in[0] * in[1]) * r);
  };
  for (const Shape& shape : {Shape{5}, Shape{2, 1300}}) check_through(f, loss, shape);
}

TEST_CASE("gradients of more than a thousand elements through reductions and products",
          "[jit][derivative]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    const Tensor centred = x - mean(x, {1}, keepdims);
    return softmax(matmul(centred, transpose(y)) * 0.1) + sum(square(centred), {0}, keepdims)[0][0];
  };
  const auto loss = [](const Tensor& r, const std::vector<Tensor>&) {
    return sum(r * reshape(linspace(-1, 1, r.size()), r.shape()));
  };
  check_through(f, loss, {33, 70});
  check_through(f, loss, {3, 4100});
}

TEST_CASE("broadcast operands get sums of gradients", "[jit][derivative]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    return x * slice(y, 0, {0, 1}) + slice(x, 1, {0, 1}) * y;
  };
  const auto loss = [](const Tensor& r, const std::vector<Tensor>&) { return sum(square(r)); };
  check_through(f, loss, {1100, 3});
  check_through(f, loss, {3, 1100});
}

TEST_CASE("second derivatives through a compiled function are eager's", "[jit][derivative]") {
  const auto f = [](const Tensor& x) { return sum(tanh(x) * x * x); };
  const auto g = compile(f);
  const Tensor x = wave({6});
  for (int call = 0; call < 5; ++call) {
    CHECK(same_bits(hessian(g, x), hessian(f, x)));
    CHECK(same_bits(grad(g)(x), grad(f)(x)));
  }
}

TEST_CASE("results through which no gradient flows do not track any", "[jit][derivative]") {
  const auto f = [](const Tensor& x, const Tensor& y) {
    return Both(floor(x) * 2, no_grad([&] { return x * y; }) + stop_gradient(y));
  };
  const auto g = compile(f);
  const Variable w = parameter(wave({4}));
  for (int call = 0; call < 5; ++call) {
    const Both expected = f(w, w * 2);
    const Both got = g(w, w * 2);
    CHECK(got.first.tracks_gradient() == expected.first.tracks_gradient());
    CHECK(got.second.tracks_gradient() == expected.second.tracks_gradient());
    CHECK(same_bits(got.second, expected.second));
  }
}

TEST_CASE("a gradient is read as it lies, as eager reads it", "[jit][derivative]") {
  // Which code multiplies matrices depends on their layout, and with it the bits of long sums.
  const auto product = [](const Tensor& b, const Tensor& a) { return matmul(a, b); };
  const auto compiled = compile(product, {.check = Check::never});
  const bool is_cpu = default_device() == Device{};  // of other devices' products all are alike
  const int64_t rows = is_cpu ? 1500 : 150, columns = is_cpu ? 1024 : 102;
  const Tensor a = sin(reshape(arange(rows * 64).to(f32), {rows, 64}));
  const Tensor b = cos(reshape(arange(64 * columns).to(f32), {64, columns}));
  const Tensor c = sin(reshape(arange(columns * rows).to(f32), {columns, rows}));
  const auto check = [&](const auto& loss) {
    const auto of_eager =
        grad([&](const Tensor& x, const Tensor& y) { return loss(product(x, y)); });
    const auto of_compiled =
        grad([&](const Tensor& x, const Tensor& y) { return loss(compiled(x, y)); });
    const Tensor expected = of_eager(b, a);
    for (int call = 0; call < 5; ++call) CHECK(same_bits(of_compiled(b, a), expected));
  };
  check([](const Tensor& y) { return sum(y); });
  check([&](const Tensor& y) { return sum(transpose(y) * c); });
  check([&](const Tensor& y) { return sum(sum(y, 0) * slice(c, 1, Range{0, 1})); });
}

TEST_CASE("gradients may lie in more ways than are kept", "[jit][derivative]") {
  const auto product = [](const Tensor& b, const Tensor& a) { return matmul(a, b); };
  const auto compiled = compile(product, {.check = Check::never});
  const Tensor a = sin(reshape(arange(32).to(f32), {8, 4})), b = ones({4, 6});
  for (int64_t k = 1; k < 60; ++k) {  // the gradient is a part of rows of 6 + k
    const auto loss = [&](const Tensor& y) {
      const Tensor wide = concat({y, zeros({8, k})}, 1);
      return sum(wide * cos(arange(6 + k).to(f32)));
    };
    const auto of_eager =
        grad([&](const Tensor& x, const Tensor& y) { return loss(product(x, y)); });
    const auto of_compiled =
        grad([&](const Tensor& x, const Tensor& y) { return loss(compiled(x, y)); });
    const Tensor expected = of_eager(b, a);
    for (int call = 0; call < 3; ++call) CHECK(same_bits(of_compiled(b, a), expected));
  }
}
