// Composite ops in eager against what they expand to.
#include "eager/composite.h"

#include "core/backend.h"
#include "core/memory.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"
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
  const Op* const op = find_op(name);
  REQUIRE(op != nullptr);
  return *op;
}

/// What the call allocates beside its result: nothing if it is one launch.
uint64_t temporaries(const Op& op, Inputs inputs, const Attrs& attrs) {
  const uint64_t before = memory_statistics().allocations;
  const Tensor result = eager::run_composite(op.expand, inputs, attrs);
  return memory_statistics().allocations - before - 1;
}

/// Checks each call of a first few against the expansion.
void check(const Op& op, const std::vector<Tensor>& tensors, const Attrs& attrs) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : tensors) inputs.push_back(&tensor);
  CAPTURE(op.name, to_string(op, attrs), describe(tensors[0]));
  const Tensor expanded = op.expand(inputs, attrs);
  for (const int threads : {1, 1, 1, 3}) {
    const Threads scope(threads);
    const Tensor result = eager::run_composite(op.expand, inputs, attrs);
    CHECK(result.spec() == expanded.spec());
    CHECK(result.internals().strides == expanded.internals().strides);
    CHECK(same_bits(result, expanded));
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
    check(op_named("rms_norm"), {x}, {count, 0.0, false});
    check(op_named("rms_norm"), {x, weight}, {count, 1e-6, true});
  }
  if (x.rank() < 2) return;
  const int64_t features = x.shape()[1];
  const Tensor weight = cast(randn({features}), x.dtype());
  check(op_named("group_norm"), {x, weight, weight}, {features, 1e-5, true, true});
  check(op_named("batch_mean"), {x}, {int64_t{1}});
  const Tensor shift = weight * 1e-6;
  check(op_named("batch_variance"), {x, weight, shift}, {int64_t{1}});
  check(op_named("batch_norm"), {x, weight, abs(weight), shift, weight, weight},
        {int64_t{1}, 1e-5, true, true, true});
}

/// Whether the third call like this is one launch.
bool is_fused(const Op& op, const Tensor& x, const Attrs& attrs) {
  const Tensor* const input = &x;
  const Inputs inputs(&input, 1);
  for (int i = 0; i < 2; ++i) {
    CHECK(temporaries(op, inputs, attrs) > 0);
  }
  return temporaries(op, inputs, attrs) == 0;
}

}  // namespace

TEST_CASE("fused rows give the bits of the expansion", "[eager][composite]") {
  manual_seed(7);
  for (const DType dtype : {f32, f64}) {
    for (const Shape& shape : {Shape{16}, Shape{3, 31}, Shape{64, 129}, Shape{5, 513},
                               Shape{2, 9001}, Shape{1, 300001}, Shape{4, 3, 200}}) {
      // Where points are interpreted, or a GPU's threads are fibers, a minute.
      if (element_count(shape) > 100000 && default_device() != Device{}) continue;
      check_all(cast(randn(shape) * 3, dtype));
    }
  }
}

TEST_CASE("fused rows treat what is not a number as the expansion does", "[eager][composite]") {
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

TEST_CASE("composites that are one kernel", "[eager][composite][host]") {
  if (!backend(Device{}).can_generate_code()) return;
  clear_executables();
  const Op &softmax_op = op_named("softmax"), &var_op = op_named("var");
  const Tensor x = randn({64, 129});
  CHECK(is_fused(softmax_op, x, {int64_t{1}}));
  CHECK(is_fused(softmax_op, transpose(x), {int64_t{1}}));
  CHECK(is_fused(softmax_op, cast(x, f16), {int64_t{1}}));
  CHECK(is_fused(softmax_op, cast(x, i32), {int64_t{1}}));
  CHECK(is_fused(var_op, x, {Dims{1}, false, int64_t{0}}));
  CHECK(is_fused(var_op, cast(x, f64), {Dims{1}, true, int64_t{1}}));
  CHECK(is_fused(op_named("std"), x, {Dims{-1}, true, int64_t{1}}));
  CHECK(is_fused(op_named("mean"), x, {Dims{1}, false}));
  CHECK(is_fused(op_named("logsumexp"), x, {Dims{1}, false}));
  CHECK(is_fused(op_named("log_softmax"), x, {int64_t{1}}));
  CHECK(is_fused(op_named("layer_norm"), x, {int64_t{1}, 1e-5, false, false}));
}

TEST_CASE("composites that are several kernels", "[eager][composite][host]") {
  if (!backend(Device{}).can_generate_code()) return;
  clear_executables();
  const auto check = [](const Tensor& x, int64_t axis, uint64_t expected) {
    const Op& op = op_named("softmax");
    const Tensor* const input = &x;
    const Inputs inputs(&input, 1);
    const Attrs attrs = {axis};
    for (int i = 0; i < 2; ++i) CHECK(temporaries(op, inputs, attrs) > expected);
    CHECK(temporaries(op, inputs, attrs) == expected);
    CHECK(same_bits(eager::run_composite(op.expand, inputs, attrs), op.expand(inputs, attrs)));
  };
  // What they hand on lies in one block.
  check(randn({64, 130}), 0, 1);  // along columns: max; exp and its sum; the quotient
  check(randn({100001}), 0, 1);   // one long row: all threads take part in each
}

TEST_CASE("a composite of other operands is another call", "[eager][composite][host]") {
  const Op& op = op_named("softmax");
  const std::vector<Tensor> tensors = {randn({8, 150}), cast(randn({8, 150}), f64),
                                       transpose(randn({150, 8})), randn({4, 150}), randn({600})};
  for (int i = 0; i < 4; ++i) {
    for (const Tensor& x : tensors) {
      const Tensor* const input = &x;
      const Attrs attrs = {int64_t{x.rank() - 1}};
      CHECK(same_bits(eager::run_composite(op.expand, Inputs(&input, 1), attrs),
                      op.expand(Inputs(&input, 1), attrs)));
    }
  }
}

TEST_CASE("a composite of another number is another call", "[eager][composite][host]") {
  const Op& op = op_named("lerp");
  const Tensor a = randn({8, 150}), b = randn({8, 150}), in_memory = zeros({});
  const std::vector<Tensor> weights = {constant(0.25, f32), constant(0.75, f32), constant(0, f32),
                                       in_memory, constant(0.75, f32, true)};
  for (int i = 0; i < 4; ++i) {
    for (const Tensor& weight : weights) {
      const Tensor* const inputs[] = {&a, &b, &weight};
      CHECK(same_bits(eager::run_composite(op.expand, Inputs(inputs), {}),
                      op.expand(Inputs(inputs), {})));
    }
  }
  // More than a thread's table has places, so that numbers meet in one.
  for (int i = 0; i < 400; ++i) {
    const Tensor weight = constant(i / 512.0, f32);
    const Tensor* const inputs[] = {&a, &b, &weight};
    for (int call = 0; call < 2; ++call)
      CHECK(same_bits(eager::run_composite(op.expand, Inputs(inputs), {}),
                      op.expand(Inputs(inputs), {})));
  }
  const Tensor* const same[] = {&a, &a, &weights[0]};  // one tensor twice, then two
  for (int i = 0; i < 3; ++i)
    CHECK(same_bits(eager::run_composite(op.expand, Inputs(same), {}), a));
  const Tensor* const inputs[] = {&a, &b, &weights[0]};
  CHECK(same_bits(eager::run_composite(op.expand, Inputs(inputs), {}),
                  op.expand(Inputs(inputs), {})));
  if (backend(Device{}).can_generate_code()) CHECK(temporaries(op, Inputs(inputs), {}) == 0);
}

TEST_CASE("an eager gradient by a number is one kernel", "[eager][composite][host]") {
  if (!backend(Device{}).can_generate_code()) return;
  const auto slope = grad([](const Tensor& x) { return sum(maximum(x, 0.5)); });
  const Tensor x = randn({64, 129});
  const Tensor expected = cast(x > 0.5, f32) + cast(x == 0.5, f32) * 0.5;
  uint64_t allocations = 0, first = 0;
  for (int i = 0; i < 3; ++i) {
    const uint64_t before = memory_statistics().allocations;
    CHECK(same_bits(slope(x), expected));
    allocations = memory_statistics().allocations - before;
    if (i == 0) first = allocations;
  }
  CHECK(allocations + 2 <= first);  // none of two comparisons, two products and a choice
}

TEST_CASE("composites of nothing and of numbers", "[eager][composite]") {
  for (int i = 0; i < 3; ++i) {
    CHECK(softmax(zeros({0, 128})).shape() == Shape{0, 128});
    CHECK(softmax(zeros({128, 0})).shape() == Shape{128, 0});
    CHECK(mean(full({}, 2.0)).item<float>() == 2);
  }
}

TEST_CASE("a composite whose code was forgotten", "[eager][composite][host]") {
  const Tensor x = randn({16, 200});
  const Tensor expected = softmax(x);
  for (int i = 0; i < 12; ++i) {
    if (i % 4 == 3) clear_executables();
    CHECK(same_bits(softmax(x), expected));
  }
}

TEST_CASE("a composite that draws numbers draws new ones at each call", "[eager][composite]") {
  static constinit const Op noisy = {
      .name = "test.noisy",
      .kind = OpKind::composite,
      .arity = 1,
      .expand = [](Inputs x, const Attrs&) { return *x[0] + rand(x[0]->shape()); },
      .summary = "x with noise."};
  const Tensor x = randn({3, 40});
  const Tensor* const input = &x;
  const Inputs inputs(&input, 1);
  manual_seed(11);
  std::vector<Tensor> expected;
  for (int i = 0; i < 5; ++i) expected.push_back(noisy.expand(inputs, {}));
  manual_seed(11);
  for (const Tensor& result : expected)
    CHECK(same_bits(eager::run_composite(noisy.expand, inputs, {}), result));
}

TEST_CASE("a tape and a trace see the expansion", "[eager][composite]") {
  const Tensor x = randn({4, 100}), g = randn({4, 100});
  const auto loss = [g](const Tensor& t) { return sum(softmax(t) * g); };
  const Tensor y = softmax(x);
  const Tensor expected = y * (g - sum(y * g, {-1}, keepdims));
  CHECK(max(abs(grad(loss)(x) - expected)).item<float>() < 1e-6F);
  const auto compiled = compile([](const Tensor& t) { return softmax(t); });
  for (int i = 0; i < 3; ++i) CHECK(same_bits(compiled(x), y));
  CHECK(compiled.explain().signatures[0].plan.steps.at(0).ops.size() == 6);
  const Tensor total = logsumexp(x, {1}, keepdims);
  const Tensor got = grad([](const Tensor& t) { return sum(logsumexp(t, {1})); })(x);
  CHECK(max(abs(got - exp(x - total))).item<float>() < 1e-6F);
}

TEST_CASE("a tape keeps what softmax gives, and none of what it expands to",
          "[eager][composite][host]") {
  const auto f64_of = [](const Tensor& t) { return cast(t, f64); };
  const Tensor x = randn({64, 100}), g = randn({64, 100});
  for (const bool is_log : {false, true}) {
    const auto f = [is_log](const Tensor& t) { return is_log ? log_softmax(t) : softmax(t); };
    const Variable w = parameter(x);
    const std::size_t before = memory_statistics().in_use;
    const Tensor y = f(w.get());
    CHECK(memory_statistics().in_use - before <= std::size_t{64} * 100 * 4 + 4096);
    const Tensor wide = f(f64_of(x)), wide_g = f64_of(g);
    const Tensor expected = is_log ? wide_g - exp(wide) * sum(wide_g, {1}, keepdims)
                                   : wide * (wide_g - sum(wide * wide_g, {1}, keepdims));
    const auto slope = grad([&](const Tensor& t) { return sum(f(t) * g); });
    const auto compiled = compile(slope);
    for (int i = 0; i < 5; ++i) {
      const Tensor got = slope(x);
      CHECK(max(abs(f64_of(got) - expected)).item<double>() < 4e-6);
      CHECK(same_bits(compiled(x), got));
    }
  }
}

namespace {

/// Gradients of sum(norm(x, weight, bias) g) by x, weight, bias.
template <class Norm>
std::vector<Tensor> gradients_of(const Norm& norm, const Tensor& x, const Tensor& g,
                                 const Variable& weight, const Variable& bias) {
  const Variable of_x = parameter(x);
  weight.clear_grad();
  bias.clear_grad();
  sum(norm(of_x) * g).backward();
  return {of_x.grad(), weight.grad(), bias.grad()};
}

double distance(const Tensor& got, const Tensor& wanted) {
  return max(abs(cast(got, f64) - wanted)).item<double>();
}

}  // namespace

// Against the formulas in float64 (Ba, Kiros, Hinton, section 3; Zhang, Sennrich, section 4).
TEST_CASE("gradients of layer_norm and rms_norm are those of their formulas",
          "[eager][composite]") {
  const Tensor x = randn({64, 100}), g = randn({64, 100});
  const Variable weight = parameter(randn({100})), bias = parameter(ones({100}));
  const auto layer = [&](const Tensor& t) {
    return layer_norm(t, {.weight = weight, .bias = bias});
  };
  const auto rms = [&](const Tensor& t) { return rms_norm(t, {.weight = weight}) + bias; };
  const Tensor wide = cast(x, f64), by_result = cast(g, f64);
  const Tensor scaled = by_result * cast(weight.get(), f64);
  const auto by_x = [&](const Tensor& n, const Tensor& scale, const Tensor& shift) {
    return scale * (scaled - shift - n * mean(scaled * n, {1}, keepdims));
  };
  const Tensor centred = wide - mean(wide, {1}, keepdims);
  const Tensor layer_scale = 1 / sqrt(mean(centred * centred, {1}, keepdims) + 1e-5),
               rms_scale = 1 / sqrt(mean(wide * wide, {1}, keepdims) + 1e-6);
  const Tensor layer_n = centred * layer_scale, rms_n = wide * rms_scale;
  const auto check_gradients = [&](const auto& norm, const Tensor& n, const Tensor& wanted) {
    const auto step = [&](const Tensor& t) { return gradients_of(norm, t, g, weight, bias); };
    const auto compiled = compile(step);
    for (int i = 0; i < 5; ++i) {  // eager: op by op, then by kernels
      const std::vector<Tensor> got = step(x), of_compiled = compiled(x);
      CHECK(distance(got[0], wanted) < 4e-6);
      CHECK(distance(got[1], sum(by_result * n, {0})) < 4e-5);
      CHECK(distance(got[2], sum(by_result, {0})) < 4e-5);
      for (std::size_t k = 0; k < 3; ++k) CHECK(same_bits(of_compiled[k], got[k]));
    }
    const std::string plan = to_string(compiled.explain());
    INFO(plan);  // by x and by weight: the statistics of a row are computed once
    CHECK(plan.find("rsqrt") == plan.rfind("rsqrt"));
    CHECK(plan.find("rsqrt x") == std::string::npos);
  };
  check_gradients(layer, layer_n, by_x(layer_n, layer_scale, mean(scaled, {1}, keepdims)));
  check_gradients(rms, rms_n, by_x(rms_n, rms_scale, zeros({64, 1}, f64)));
}

TEST_CASE("a tape keeps what is normalised, and numbers of rows or features",
          "[eager][composite][host]") {
  const Variable x = parameter(randn({64, 100})), weight = parameter(ones({100}));
  const auto check_kept = [](const auto& f) {
    const std::size_t before = memory_statistics().in_use;
    const Tensor y = f();
    CHECK(y.tracks_gradient());
    CHECK(memory_statistics().in_use - before <= std::size_t{64} * 100 * 4 + 8192);
  };
  check_kept([&] { return layer_norm(x, {.weight = weight}); });
  check_kept([&] { return rms_norm(x, {.weight = weight}); });
  check_kept([&] { return group_norm(x, 4, {.weight = weight}); });
  check_kept([&] { return batch_norm(x, {.weight = weight, .bias = {}}).values; });
}

// Of the host, whose memory is counted.
TEST_CASE("a gradient rule becomes one kernel, with the same bits", "[eager][composite][host]") {
  const Tensor x = randn({40, 100}), g = randn({40, 100});
  using Function = Tensor (*)(const Tensor&);
  for (const Function f : {Function(tanh), Function(gelu), Function(silu), Function(relu)}) {
    const auto slope = grad([&](const Tensor& t) { return sum(f(t) * g); });
    const auto allocations = [&](const Tensor& expected) {
      const uint64_t before = memory_statistics().allocations;
      const Tensor got = slope(x);
      const uint64_t count = memory_statistics().allocations - before;
      if (expected.is_defined()) CHECK(same_bits(got, expected));
      return count;
    };
    const Tensor expected = slope(x);
    const uint64_t op_by_op = allocations(expected);
    static_cast<void>(allocations(expected));
    CHECK(allocations(expected) < op_by_op);
    const ResultCheckScope looked_at(ResultCheck::nan);  // each op is
    CHECK(allocations(expected) >= op_by_op);
  }
}
