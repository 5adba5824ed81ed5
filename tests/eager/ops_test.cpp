// Every op, for every sample of the table: eager against the reference.
#include "eager/ops/ops.h"

#include "core/parallel.h"
#include "eager/apply.h"
#include "tests/fenced.h"
#include "tests/on_threads.h"
#include "tests/op_reference.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cfloat>
#include <cmath>

using namespace nitinol;
using namespace nitinol::test;

namespace {

struct Precision {
  int mantissa;  ///< bits, with the hidden one
  int lowest;    ///< exponent of the smallest normal number
  long double largest;
};

/// The one table of floating formats.
Precision precision_of(DType dtype) {
  if (dtype == f16) return {11, -14, 65504.0L};
  if (dtype == bf16) return {8, -126, 3.3895313892515355e38L};
  if (dtype == f32) return {24, -126, FLT_MAX};
  return {53, -1022, DBL_MAX};
}

long double ulp_of(DType dtype, long double value) {
  const Precision p = precision_of(dtype);
  const int exponent = value == 0 ? p.lowest : std::max(std::ilogb(value), p.lowest);
  return std::ldexp(1.0L, exponent - p.mantissa + 1);
}

bool is_near(DType dtype, long double got, long double expected, long double ulps,
             long double absolute) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) == std::isnan(got);
  if (!is_floating(dtype)) return got == expected;
  if (got == expected) return true;
  const long double limit = precision_of(dtype).largest;
  const long double allowed = ulps * ulp_of(dtype, expected) + absolute;
  if (std::isinf(got)) return std::fabs(expected) + allowed >= limit && (got > 0) == (expected > 0);
  return std::fabs(got - expected) <= allowed;
}

long double largest_of(const Sample& sample) {
  long double most = 1;
  for (const Tensor& input : sample.inputs) {
    for (const long double value : elements_of(input).values) {
      if (std::isfinite(value)) most = std::max(most, std::fabs(value));
    }
  }
  return most;
}

/// The first element that differs, as text, or nothing.
std::string first_wrong(const Op& op, const Sample& sample, const Tensor& result) {
  const Elements got = elements_of(result);
  const Elements expected = reference(op, sample.inputs, sample.attrs, result.spec());
  if (got.shape != expected.shape) {
    return to_string(got.shape) + " instead of " + to_string(expected.shape);
  }
  long double absolute = 0;
  if (sample.absolute != 0 && is_floating(got.dtype)) {
    absolute = sample.absolute * std::ldexp(1.0L, 1 - precision_of(got.dtype).mantissa);
    absolute *= op.kind == OpKind::elementwise ? 1 : largest_of(sample);
  }
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    if (is_near(got.dtype, got.values[i], expected.values[i], sample.ulps, absolute)) continue;
    return fmt::format("element {}: {} instead of {}", i, static_cast<double>(got.values[i]),
                       static_cast<double>(expected.values[i]));
  }
  return {};
}

Tensor compute(const Op& op, const Sample& sample) {
  return apply(op, sample.pointers(), sample.attrs);
}

}  // namespace

TEST_CASE("every op has a name of its own, a summary and samples", "[ops]") {
  for (const Op* op : all_ops()) {
    INFO(op->name);
    CHECK(find_op(op->name) == op);
    CHECK_FALSE(op->summary.empty());
    CHECK_FALSE(samples(*op).empty());
  }
  CHECK(find_op("no such op") == nullptr);
}

TEST_CASE("every op gives what the reference gives", "[ops]") {
  for (const Op* op : all_ops()) {
    for (const Sample& sample : samples(*op)) {
      INFO(sample.describe(*op));
      CHECK(first_wrong(*op, sample, compute(*op, sample)) == "");
    }
  }
}

TEST_CASE("strides do not change bits", "[ops]") {
  for (const Op* op : all_ops()) {
    if (op->kind == OpKind::library) continue;  // equal bits are promised for equal strides only
    for (const Sample& sample : samples(*op)) {
      INFO(sample.describe(*op));
      const Tensor expected = compute(*op, sample);
      for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
        for (const Tensor& variant : strided_variants(sample.inputs[k])) {
          Sample changed = sample;
          changed.inputs[k] = variant;
          REQUIRE(same_bits(changed.inputs[k], sample.inputs[k]));
          CHECK(same_bits(compute(*op, changed), expected));
        }
      }
    }
  }
}

TEST_CASE("matrix products of strided operands are right", "[ops]") {
  const Op& op = *find_op("matmul");
  for (const Sample& sample : samples(op)) {
    for (const Tensor& a : strided_variants(sample.inputs[0])) {
      for (const Tensor& b : strided_variants(sample.inputs[1])) {
        const Sample changed = {{a, b}, {}, sample.ulps, sample.absolute};
        INFO(changed.describe(op));
        CHECK(first_wrong(op, changed, compute(op, changed)) == "");
      }
    }
  }
}

TEST_CASE("a broadcast operand is as good as a repeated one", "[ops]") {
  for (const Op* op : all_ops()) {
    if (op->kind != OpKind::elementwise || op->arity < 2 || !op->accepts.contains(i32)) continue;
    const Tensor x = random_values(i32, {2, 3, 4}, 1);
    Sample sample = {{x, x, x}, {}};
    sample.inputs.resize(static_cast<std::size_t>(op->arity));
    if (op->name == "where") sample.inputs[0] = x > 0;
    for (const Shape& shape : {Shape{}, Shape{4}, Shape{3, 1}, Shape{2, 1, 1}, Shape{1, 3, 4}}) {
      for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
        const DType dtype = sample.inputs[k].dtype();
        Sample broadcast = sample;
        broadcast.inputs[k] = random_values(dtype, shape, 2);
        Sample repeated = sample;
        repeated.inputs[k] = copy(expand(broadcast.inputs[k], {2, 3, 4}));
        INFO(broadcast.describe(*op));
        CHECK(same_bits(compute(*op, broadcast), compute(*op, repeated)));
      }
    }
  }
}

TEST_CASE("devices with memory of their own give the same bits", "[ops]") {
  // Number 0 interprets each formula as instructions, one element at a time; number 1 does that
  // behind a fence (tests/fenced.h).
  for (const Device device : {Device{Device::Kind::reference, 0}, test::fenced_device}) {
    for (const Op* op : all_ops()) {
      if (op->kind == OpKind::transfer) continue;
      // The host's matrix products and convolutions are a library's.
      const bool has_own_bits = op->kind != OpKind::library;
      for (const Sample& sample : samples(*op)) {
        INFO(sample.describe(*op) << " on " << device);
        Sample there = sample;
        for (Tensor& input : there.inputs) input = input.to(device);
        const Tensor got = compute(*op, there);
        CHECK(got.device() == device);
        if (has_own_bits) CHECK(same_bits(got, compute(*op, sample)));
      }
    }
  }
}

TEST_CASE("the number of threads does not change bits", "[ops]") {
  const Tensor x = random_values(f32, {300, 4100}, 1);
  const Tensor y = random_values(f32, {4100}, 2);
  const auto compute_all = [&] {
    return std::vector<Tensor>{
        x + y,     exp(x),       sum(x),     sum(x, 0),          sum(x, 1),
        max(x, 0), argmax(x, 1), softmax(x), copy(transpose(x)), concat({x, x}, 1),
        x.to(i32), logsumexp(x)};
  };
  check_same_on_threads(compute_all);
}
