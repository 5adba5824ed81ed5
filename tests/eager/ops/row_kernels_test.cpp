// The fused eager paths of composites against their expansions.
#include "eager/ops/row_kernels.h"

#include "eager/ops/ops.h"
#include "eager/ops/statistics.h"
#include "tests/on_threads.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

const Op& op_named(std::string_view name) {
  return *std::ranges::find(statistics_ops(), name, &Op::name);
}

/// Checks that there is a fused path and that it gives the bits of the expansion.
void check(const Op& op, const std::vector<Tensor>& tensors, const Attrs& attrs) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : tensors) inputs.push_back(&tensor);
  for (const int count : {1, 3}) {
    const Threads threads(count);
    const Tensor fused = op.fused(op, inputs, attrs);
    CAPTURE(op.name, to_string(op, attrs), describe(tensors[0]), count);
    REQUIRE(fused.is_defined());
    const Tensor expanded = op.expand(inputs, attrs);
    CHECK(fused.dtype() == expanded.dtype());
    CHECK(same_bits(fused, expanded));
  }
}

void check_all(const Tensor& x) {
  const int64_t last = x.rank() - 1;
  for (const bool keeps : {false, true}) {
    for (const Dims& axes : {Dims{-1}, Dims{last}, Dims{}}) {
      check(op_named("mean"), {x}, {axes, keeps});
      check(op_named("logsumexp"), {x}, {axes, keeps});
      for (const int64_t ddof : {0, 1, 1000000}) {
        check(op_named("var"), {x}, {axes, keeps, ddof});
        check(op_named("std"), {x}, {axes, keeps, ddof});
      }
    }
  }
  check(op_named("softmax"), {x}, {last});
  check(op_named("log_softmax"), {x}, {last});
  for (int64_t count = 1; count <= x.rank(); ++count) {
    Shape shape;
    for (int64_t i = x.rank() - count; i < x.rank(); ++i) {
      shape.push_back(x.shape()[static_cast<int>(i)]);
    }
    const Tensor weight = cast(randn(shape), x.dtype()), bias = cast(randn(shape), x.dtype());
    const Op& op = op_named("layer_norm");
    check(op, {x}, {count, 1e-5, false, false});
    check(op, {x, weight}, {count, 1e-5, true, false});
    check(op, {x, bias}, {count, 0.0, false, true});
    check(op, {x, weight, bias}, {count, 1e-3, true, true});
  }
}

bool is_fused(const Op& op, const Tensor& x, const Attrs& attrs) {
  const Tensor* const input = &x;
  return op.fused(op, Inputs(&input, 1), attrs).is_defined();
}

}  // namespace

TEST_CASE("fused rows give the bits of the expansion", "[eager][rows]") {
  manual_seed(7);
  for (const DType dtype : {f32, f64}) {
    for (const Shape& shape : {Shape{16}, Shape{3, 31}, Shape{64, 129}, Shape{5, 513},
                               Shape{2, 9001}, Shape{1, 300001}, Shape{4, 3, 200}}) {
      check_all(cast(randn(shape) * 3, dtype));
    }
  }
}

TEST_CASE("fused rows treat what is not a number as the expansion does", "[eager][rows]") {
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  manual_seed(8);
  for (const DType dtype : {f32, f64}) {
    for (const std::vector<double>& odd :
         {std::vector{nan}, std::vector{inf}, std::vector{-inf}, std::vector{inf, -inf},
          std::vector{1e38, -1e38}, std::vector{-0.0, 0.0}, std::vector{1e-42}}) {
      Tensor x = cast(randn({4, 150}), dtype);
      for (std::size_t i = 0; i < odd.size(); ++i) {
        x = x.at({static_cast<int64_t>(i), 70}).set(full({}, odd[i], dtype));
        x = x.at({2, static_cast<int64_t>(i)}).set(full({}, odd[i], dtype));
      }
      check_all(x);
      check_all(full({2, 40}, odd[0], dtype));
    }
  }
}

TEST_CASE("rows that a fused path does not take", "[eager][rows]") {
  const Op &softmax_op = op_named("softmax"), &var_op = op_named("var");
  const Tensor x = randn({64, 128});
  CHECK(is_fused(softmax_op, x, {int64_t{1}}));
  CHECK_FALSE(is_fused(softmax_op, x, {int64_t{0}}));
  CHECK_FALSE(is_fused(softmax_op, transpose(x), {int64_t{1}}));
  CHECK_FALSE(is_fused(softmax_op, cast(x, f16), {int64_t{1}}));
  CHECK_FALSE(is_fused(softmax_op, zeros({0, 128}), {int64_t{1}}));
  CHECK_FALSE(is_fused(softmax_op, zeros({128, 1}), {int64_t{1}}));
  CHECK_FALSE(is_fused(softmax_op, zeros({1000, 20}), {int64_t{1}}));
  CHECK_FALSE(is_fused(var_op, x, {Dims{0}, false, int64_t{0}}));
  CHECK_FALSE(is_fused(var_op, x, {Dims{5}, false, int64_t{0}}));
  CHECK_FALSE(is_fused(var_op, x, {Dims{1, -1}, false, int64_t{0}}));
}

TEST_CASE("a tape and a trace see the expansion", "[eager][rows]") {
  const Tensor x = randn({4, 100}), g = randn({4, 100});
  const auto loss = [g](const Tensor& t) { return sum(softmax(t) * g); };
  const Tensor y = softmax(x);
  const Tensor expected = y * (g - sum(y * g, {-1}, keepdims));
  const Tensor got = grad(loss)(x);
  CHECK(max(abs(got - expected)).item<float>() < 1e-6F);
  const auto compiled = compile([](const Tensor& t) { return softmax(t); });
  for (int i = 0; i < 3; ++i) CHECK(same_bits(compiled(x), y));
  CHECK(compiled.explain().signatures[0].plan.steps.at(0).ops.size() == 5);
}
