// Every op with a floating result has a gradient rule or says that there is none; every rule agrees
// with central differences, first and second order.
#include "autograd/check.h"
#include "core/op.h"
#include "eager/apply.h"
#include "nitinol.h"
#include "tests/op_samples.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>
#include <string_view>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// Whether anything of `op`'s depends on floating operands.
bool has_floating_operands(const Op& op) {
  return op.arity != 0 && op.kind != OpKind::create && op.accepts.contains(f64);
}

/// Operands at which the op is smooth: the sample's in number and shape, with values in the domain.
std::vector<Tensor> smooth_inputs(const Op& op, const Sample& sample) {
  static const std::set<std::string_view> positive = {
      "sqrt",  "rsqrt", "reciprocal",   "log",       "log1p",     "log2", "log10",
      "div",   "pow",   "floor_divide", "remainder", "prod",      "fmod", "cbrt",
      "atan2", "hypot", "lgamma",       "digamma",   "batch_norm"};
  static const std::set<std::string_view> inside_1 = {"asin", "acos", "atanh", "erfinv"};
  std::vector<Tensor> inputs;
  for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
    const Tensor& given = sample.inputs[k];
    if (!is_floating(given.dtype())) {
      inputs.push_back(given);
      continue;
    }
    const Tensor x = random_values(f64, given.shape(), 40 + k) * (op.name == "tan" ? 0.3 : 0.7);
    const double least = k == 0 ? 0.4 : 0.53;
    if (inside_1.contains(op.name))
      inputs.push_back(tanh(x) * 0.8);
    else if (op.name == "acosh")
      inputs.push_back(abs(x) + 1.4);
    else
      inputs.push_back(positive.contains(op.name) ? abs(x) + least : x);
  }
  if (op.name == "batch_variance") {  // of x's own mean
    const int64_t axis = std::get<int64_t>(sample.attrs[0]);
    inputs[1] = mean(flatten(moveaxis(inputs[0], axis, 0), 1), {1});
    inputs[2] = zeros_like(inputs[2]);
  }
  return inputs;
}

bool is_small(const Sample& sample) {
  int64_t total = 0;
  for (const Tensor& input : sample.inputs) total += input.size();
  return total <= 200;
}

/// Rounded, or without a derivative: the standard deviation of one number.
bool is_smooth(const Op& op, const Sample& sample) {
  if (op.name == "cast") return std::get<DType>(sample.attrs[0]) == f64;
  return op.name != "std" || sample.inputs[0].size() > 4;
}

/// Samples in float64 without edge cases.
std::vector<Sample> chosen_samples(const Op& op) {
  std::vector<Sample> out;
  for (const Sample& sample : samples(op)) {
    const bool is_wide =
        std::ranges::any_of(sample.inputs, [](const Tensor& x) { return x.dtype() == f64; });
    if (is_wide && is_small(sample) && is_smooth(op, sample)) out.push_back(sample);
  }
  return out;
}

}  // namespace

TEST_CASE("every op with floating operands has a gradient rule or says that there is none",
          "[autograd]") {
  for (const Op* op : all_ops()) {
    if (!has_floating_operands(*op) || op->expand != nullptr) continue;
    INFO(op->name);
    CHECK((op->gradient.rule != nullptr) != op->gradient.is_zero);
  }
}

// What ops compute on each instruction set is tested by ops_test.cpp; the rules are the same.
TEST_CASE("every rule agrees with central differences, first and second order",
          "[autograd][no-isa]") {
  for (const Op* op : all_ops()) {
    if (!has_floating_operands(*op)) continue;
    INFO(op->name);
    int checked = 0;
    for (const Sample& sample : chosen_samples(*op)) {
      INFO(sample.describe(*op));
      const auto f = [&](const std::vector<Tensor>& x) {
        std::vector<const Tensor*> pointers;
        for (const Tensor& tensor : x) pointers.push_back(&tensor);
        return apply(*op, pointers, sample.attrs);
      };
      const std::vector<Tensor> inputs = smooth_inputs(*op, sample);
      if (op->gradient.is_zero) {
        std::vector<Tensor> tracked;
        for (const Tensor& x : inputs)
          tracked.push_back(is_floating(x.dtype()) ? parameter(x).get() : x);
        CHECK_FALSE(f(tracked).tracks_gradient());
      } else {
        CHECK_NOTHROW(check_gradients(f, inputs, {.order = 2}));
      }
      ++checked;
    }
    CHECK(checked > 0);
  }
}
