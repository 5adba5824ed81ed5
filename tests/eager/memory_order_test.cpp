// In which order the results of elementwise ops lie in memory.
#include "eager/memory_order.h"

#include "core/backend.h"
#include "eager/ops/ops.h"
#include "jit/compile.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <string>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

Strides strides_after(const Tensor& x) {
  return x.internals().strides;
}

/// Checks that `f` gives the same, and leaves it in the same order, eagerly and compiled: in
/// `kernels` kernels.
template <class F>
void check_compiled(const F& f, const Tensor& x, std::size_t kernels) {
  const auto g = compile(f);
  const Tensor expected = f(x), plain = f(copy(x));
  CHECK(same_bits(expected, plain));
  for (int call = 0; call < 5; ++call) {
    const Tensor got = g(x);
    CHECK(same_bits(got, expected));
    CHECK(strides_after(got) == strides_after(expected));
  }
  CHECK(g.explain().plan_calls > 0);
  if (default_device() == Device{} && backend(Device{}).can_generate_code())
    CHECK(g.explain().signatures.at(0).plan.steps.size() == kernels);
}

}  // namespace

TEST_CASE("elementwise results lie as their operands do", "[eager][memory_order]") {
  const Tensor x = transpose(randn({20, 30}), 0, 1), plain = copy(x);  // [30, 20]
  const Strides across = {1, 30}, along = {20, 1};
  CHECK(strides_after(x) == across);
  CHECK(strides_after(plain) == along);
  CHECK(strides_after(-x) == across);
  CHECK(strides_after(x + exp(x)) == across);
  CHECK(strides_after(2.0 - x) == across);
  CHECK(strides_after(x.to(f64)) == across);
  CHECK(strides_after(where(x > 0, x, 0.0)) == across);
  SECTION("beside what repeats") {
    const Tensor row = randn({20}), column = randn({30, 1}), one = randn({1, 1});
    const Tensor all = expand(tensor(1.0F), x.shape());
    for (const Tensor& other : {row, column, one, all}) {
      CHECK(strides_after(x * other) == across);
      CHECK(same_bits(x * other, plain * other));
    }
  }
  SECTION("row-major if one of them is") {
    CHECK(strides_after(x + plain) == along);
    CHECK(strides_after(plain - x) == along);
    CHECK(same_bits(plain - x, plain - plain));
  }
  SECTION("those with gaps have no say") {
    const Tensor gaps = slice(randn({30, 40}), 1, {0, 20});
    CHECK(strides_after(gaps * 2.0) == along);
    CHECK(strides_after(x * gaps) == across);
    CHECK(same_bits(x * gaps, plain * copy(gaps)));
    CHECK(strides_after(flip(x, {0}) * 2.0) == along);
  }
  SECTION("a copy is row-major") {
    CHECK(strides_after(copy(x)) == along);
  }
}

TEST_CASE("results of several axes lie as their operands do", "[eager][memory_order]") {
  const Tensor x = randn({4, 5, 6, 7});
  const auto order_kept = [&x](const Dims& axes) {
    const Tensor seen = permute(x, axes);
    const Tensor result = seen * 0.5 + seen;
    CHECK(same_bits(result, copy(seen) * 0.5 + copy(seen)));
    return strides_after(result) == strides_after(seen);
  };
  CHECK(order_kept({0, 3, 1, 2}));
  CHECK(order_kept({3, 2, 1, 0}));
  CHECK(order_kept({1, 0, 3, 2}));
  CHECK(order_kept({3, 0, 1, 2}));
  // The last axis is the last in memory: rows are visited as fast.
  CHECK_FALSE(order_kept({0, 2, 1, 3}));
  CHECK_FALSE(order_kept({2, 1, 0, 3}));
  // Not in one order.
  const Tensor a = permute(randn({6, 6, 6}), {2, 0, 1}), b = permute(randn({6, 6, 6}), {2, 1, 0});
  CHECK(strides_after(a + b) == Strides{36, 6, 1});
}

TEST_CASE("small and narrow results are row-major", "[eager][memory_order]") {
  CHECK(strides_after(transpose(randn({3, 4}), 0, 1) * 2.0) == Strides{3, 1});
  CHECK(strides_after(transpose(randn({500, 1}), 0, 1) * 2.0) == Strides{500, 1});
  CHECK(strides_after(transpose(randn({1, 500}), 0, 1) * 2.0) == Strides{1, 1});
  CHECK((transpose(randn({0, 500}), 0, 1) * 2.0).shape() == Shape{500, 0});
  CHECK(strides_after(permute(randn({2, 3, 2}), {2, 1, 0}) * 2.0) == Strides{1, 2, 6});
}

TEST_CASE("compiled results lie as eager's, in one kernel with what is reduced",
          "[jit][memory_order]") {
  const Tensor x = transpose(randn({40, 70}), 0, 1);
  check_compiled([](const Tensor& y) { return exp(y * 2.0) + 1.0; }, x, 1);
  check_compiled([](const Tensor& y) { return softmax(y, 1); }, x, 1);
  check_compiled([](const Tensor& y) { return softmax(exp(y), 1) * y; }, x, 1);
  check_compiled([](const Tensor& y) { return y - mean(y, {1}, KeepDims::yes); }, x, 1);
  check_compiled([](const Tensor& y) { return layer_norm(relu(y)); }, x, 1);
  check_compiled([](const Tensor& y) { return y - mean(y, {0}, KeepDims::yes); }, x, 2);
  check_compiled([](const Tensor& y) { return exp(y) * sum(y, {0, 1}, KeepDims::yes); }, x, 3);
  const Tensor heads = permute(randn({3, 9, 4, 11}), {0, 3, 2, 1});
  check_compiled([](const Tensor& y) { return softmax(y * 0.5, 3); }, heads, 1);
  check_compiled([](const Tensor& y) { return y * 0.5 - mean(y * 0.5, {-1}, KeepDims::yes); },
                 heads, 1);
}

TEST_CASE("orders change no bit of a gradient", "[eager][memory_order]") {
  const Tensor x = transpose(randn({40, 50}), 0, 1);
  const auto gradient = [](const Tensor& y) {
    const Variable scale = parameter(full({50, 1}, 1.5)), shift = parameter(full({40}, 0.5));
    sum(square(tanh(y * scale + shift) - softmax(y * shift, 1))).backward();
    return std::pair(scale.grad(), shift.grad());
  };
  const auto across = gradient(x), along = gradient(copy(x));
  CHECK(same_bits(across.first, along.first));
  CHECK(same_bits(across.second, along.second));
}
