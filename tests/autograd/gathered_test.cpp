// Gradients of parts gather: one value of the operand's size, the bits of adding whole gradients.
#include "autograd/gathered.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"
#include "tracer/transaction.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// A part that is read, and the gradient that it gets.
struct Use {
  Dims starts;
  Tensor gradient;
};

Tensor part_of(const Tensor& x, const Use& use) {
  const Shape& sizes = use.gradient.shape();
  return window(x, use.starts, sizes, Dims::filled(sizes.size(), 1));
}

/// The gradient of x when it is read so, the last use first.
Tensor gathered(const Tensor& x, const std::vector<Use>& uses) {
  return grad([&](const Tensor& value) {
    Tensor total = sum(part_of(value, uses[0]) * uses[0].gradient);
    for (std::size_t k = 1; k < uses.size(); ++k)
      total = total + sum(part_of(value, uses[k]) * uses[k].gradient);
    return total;
  })(x);
}

/// The same as the sum of gradients that are zero outside of their parts.
Tensor added(const Tensor& x, const std::vector<Use>& uses) {
  Tensor total;
  for (std::size_t k = uses.size(); k-- > 0;) {
    const Shape& sizes = uses[k].gradient.shape();
    const Tensor whole = place(zeros_like(x), uses[k].gradient, uses[k].starts, sizes,
                               Dims::filled(sizes.size(), 1));
    total = total.is_defined() ? total + whole : whole;
  }
  return total;
}

/// Values whose sums depend on their order, and zeros of both signs.
Tensor values(const Shape& shape, int64_t seed) {
  const Tensor i = arange(element_count(shape)) * 7 + seed;
  const Tensor large = where(i % 3 == 0, 1e8F, where(i % 3 == 1, -1e8F, 1.0F));
  return reshape(where(i % 4 == 0, -0.0F, large), shape);
}

void check_same(const Tensor& x, const std::vector<Use>& uses) {
  const Tensor expected = added(x, uses);
  CHECK(same_bits(gathered(x, uses), expected));
  const auto compiled = compile([&](const Tensor& value) { return gathered(value, uses); });
  settle(compiled, x);
  CHECK(same_bits(compiled(x), expected));
  CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
}

/// Counts the elements that operations compute.
class Counting final : public tracer::Transaction {
 public:
  int64_t elements = 0;
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override {
    if (op.kind != OpKind::view) elements += element_count(spec.shape);
    return Transaction::run(op, inputs, attrs, spec);
  }
};

/// h = tanh(x[t] + h) over all steps.
Tensor loop(const Tensor& x) {
  Tensor h = zeros({x.shape()[1]}, x.dtype());
  for (int64_t t = 0; t < x.shape()[0]; ++t) h = nitinol::tanh(x[t] + h);
  return sum(square(h));
}

/// The same over the rows that split() gives.
Tensor split_loop(const Tensor& x) {
  Tensor h = zeros({1, x.shape()[1]}, x.dtype());
  for (const Tensor& row : split(x, 1)) h = nitinol::tanh(row + h);
  return sum(square(h));
}

}  // namespace

TEST_CASE("gradients of parts have the bits of whole gradients added up in order",
          "[autograd][gathered]") {
  const Tensor x = zeros({4, 6});
  SECTION("parts side by side") {
    check_same(
        x, {{{0, 0}, values({4, 2}, 0)}, {{0, 2}, values({4, 3}, 1)}, {{0, 5}, values({4, 1}, 2)}});
  }
  SECTION("in any order, with a gap") {
    check_same(
        x, {{{3, 0}, values({1, 6}, 0)}, {{0, 0}, values({1, 6}, 1)}, {{1, 0}, values({1, 6}, 2)}});
  }
  SECTION("parts over each other") {
    check_same(
        x, {{{0, 0}, values({3, 6}, 0)}, {{1, 0}, values({3, 6}, 1)}, {{0, 0}, values({2, 6}, 3)}});
  }
  SECTION("one part") {
    check_same(x, {{{1, 2}, values({2, 2}, 0)}});
  }
  SECTION("one part again and again") {
    check_same(
        x, {{{1, 2}, values({2, 2}, 0)}, {{1, 2}, values({2, 2}, 0)}, {{1, 2}, values({2, 2}, 4)}});
  }
  SECTION("a grid of cells") {
    std::vector<Use> uses;
    for (int64_t i = 0; i < 4; ++i) {
      for (int64_t k = 0; k < 6; ++k) uses.push_back({{3 - i, k}, values({1, 1}, i + k)});
    }
    check_same(x, uses);
  }
  SECTION("windows that slide along") {
    std::vector<Use> uses;
    for (int64_t k = 0; k < 4; ++k) uses.push_back({{0, k}, values({4, 3}, k)});
    check_same(x, uses);
  }
  SECTION("the whole value before, between and after") {
    check_same(x, {{{0, 0}, values({4, 6}, 1)},
                   {{0, 2}, values({4, 2}, 0)},
                   {{2, 0}, values({1, 6}, 2)},
                   {{0, 0}, values({4, 6}, 3)},
                   {{0, 2}, values({4, 2}, 0)},
                   {{0, 0}, values({4, 6}, 0)}});
  }
  SECTION("many times the value's size") {
    std::vector<Use> uses;
    for (int64_t k = 1; k < 24; ++k) uses.push_back({{0, 0}, values({1 + k % 4, 1 + k % 6}, k)});
    check_same(x, uses);
  }
  SECTION("an empty part") {
    check_same(x, {{{1, 0}, zeros({0, 6})}, {{1, 0}, values({1, 6}, 0)}});
  }
  SECTION("with steps") {
    const Tensor g = grad([](const Tensor& v) {
      return sum(slice(v, 1, {.step = 2}) * 2.0) + sum(slice(v, 1, {1, 6, 2}) * 3.0);
    })(x);
    CHECK(same_bits(g, expand(tensor({2.0F, 3.0F, 2.0F, 3.0F, 2.0F, 3.0F}), {4, 6})));
  }
}

TEST_CASE("a loop over parts is differentiated by work in proportion to its input",
          "[autograd][gathered]") {
  const auto f = GENERATE(&loop, &split_loop);
  const auto computed = [f](int64_t steps) {
    Counting counting;
    const InterpreterScope scope(counting);
    grad(f)(full({steps, 4096}, 0.1F));
    return static_cast<double>(counting.elements);
  };
  CHECK(computed(80) < 2.1 * computed(40));
  const auto peak = [f](int64_t steps) {
    const Tensor x = full({steps, 4096}, 0.1F);
    const std::size_t before = memory_statistics().in_use;
    reset_peak_memory();
    grad(f)(x);
    return static_cast<double>(memory_statistics().peak - before);
  };
  CHECK(peak(80) < 2.1 * peak(40));
}

TEST_CASE("Plans for such a loop move bytes in proportion to its input",
          "[autograd][gathered][no-isa]") {
  const auto function = GENERATE(&loop, &split_loop);
  const auto bytes_of = [](const jit::PlanReport& plan) {
    double bytes = 0;
    for (const program::StepReport& step : plan.steps)
      bytes += static_cast<double>(step.bytes_read + step.bytes_written);
    return bytes;
  };
  const auto inside = [&](int64_t steps) {
    const auto f = compile(grad(function));
    settle(f, full({steps, 4096}, 0.1F));
    const SignatureReport report = f.explain().signatures.at(0);
    REQUIRE(report.tier == Tier::traced);
    return bytes_of(report.plan);
  };
  CHECK(inside(80) < 2.2 * inside(40));
  const auto outside = [&](int64_t steps) {
    const auto f = compile(function);
    settle(grad([&f](const Tensor& x) { return f(x); }), full({steps, 4096}, 0.1F));
    const SignatureReport report = f.explain().signatures.at(0);
    REQUIRE(report.tier == Tier::traced);
    return bytes_of(report.backward.value());
  };
  CHECK(outside(80) < 2.2 * outside(40));
}

TEST_CASE("what has been gathered is differentiated again", "[autograd][gathered]") {
  const auto f = [](const Tensor& x) {
    Tensor product = x[0];
    for (int64_t t = 1; t < 4; ++t) product = product * x[t] + slice(x, 0, {t - 1, t + 1})[1];
    return sum(product);
  };
  const Tensor x = tensor({{2.0, 1.0}, {3.0, -1.0}, {5.0, 2.0}, {7.0, 4.0}});
  const Tensor second = hessian(f, x);
  const double step = 1e-5;
  for (int64_t i = 0; i < 4; ++i) {
    const Tensor there = x.at({i, 0}).set(x.at({i, 0}) + step);
    const Tensor back = x.at({i, 0}).set(x.at({i, 0}) - step);
    const Tensor expected = (grad(f)(there) - grad(f)(back)) / (2 * step);
    CHECK(max(abs(second.at({i, 0}) - expected)).item<double>() < 1e-6);
  }
  const auto compiled = compile([&](const Tensor& value) { return hessian(f, value); });
  settle(compiled, x);
  CHECK(same_bits(compiled(x), second));
  CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
}

TEST_CASE("parts of a parameter and of a compiled function's argument gather too",
          "[autograd][gathered]") {
  const Variable layers = parameter(values({5, 3}, 1));
  const auto apply_all = [&](const Tensor& x) {
    Tensor y = x;
    for (int64_t k = 0; k < 5; ++k) y = y * layers[k];
    return sum(y);
  };
  apply_all(ones({3})).backward();
  const Tensor expected = layers.grad();
  CHECK(expected.shape() == Shape{5, 3});
  layers.clear_grad();
  const auto compiled = compile(apply_all);
  settle(compiled, ones({3}));
  compiled(ones({3})).backward();
  CHECK(same_bits(layers.grad(), expected));
  const Tensor x = full({6, 3}, 0.5F);
  const auto of_parts = compile([](const Tensor& v) { return loop(v); });
  settle(of_parts, x);
  const auto twice = [](const auto& f) {
    return grad([&f](const Tensor& v) { return f(v) + sum(v[1]) + f(v); });
  };
  CHECK(same_bits(twice(of_parts)(x), twice(loop)(x)));
}
