// Activations beyond those of unary.cpp. What needs several operations of its own is an op; the
// rest composes.
#include "core/error.h"
#include "eager/apply.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <vector>

namespace nitinol {
namespace {

Tensor leaky_relu_rule(const GradientCall& c, int k) {
  const Tensor is_right = c.inputs[0] > 0;
  return k == 0 ? where(is_right, c.gradient, c.gradient * c.inputs[1])
                : where(is_right, 0, c.gradient * c.inputs[0]);
}

Tensor elu_rule(const GradientCall& c, int k) {
  const Tensor is_right = c.inputs[0] > 0, left = where(is_right, 0, c.inputs[0]);
  return k == 0 ? where(is_right, c.gradient, c.gradient * (c.inputs[1] * exp(left)))
                : where(is_right, 0, c.gradient * expm1(left));
}

/// Throws Error(shape) for an odd size.
std::vector<Tensor> halves_of(const Tensor& x, int64_t axis) {
  const int at = normalize_axis("glu", axis, x.rank());
  if (x.shape()[at] % 2 == 0) return chunk(x, 2, at);
  throw Error(ErrorKind::shape, {.where = "glu",
                                 .what = fmt::format("axis {} of {}", at, describe(x)),
                                 .expected = "an even size, which has halves",
                                 .got = fmt::format("{}", x.shape()[at]),
                                 .fix = {}});
}

Tensor expand_glu(Inputs inputs, const Attrs& attrs) {
  const std::vector<Tensor> halves = halves_of(*inputs[0], attr<int64_t>(attrs, 0));
  return halves[0] * sigmoid(halves[1]);
}

/// Inputs: what halves are of, the result's gradient.
Tensor expand_glu_gradient(Inputs inputs, const Attrs& attrs) {
  const auto axis = attr<int64_t>(attrs, 0);
  const std::vector<Tensor> halves = halves_of(*inputs[0], axis);
  const Tensor& gradient = *inputs[1];
  const Tensor gate = sigmoid(halves[1]);
  return concat({gradient * gate, gradient * (halves[0] * (gate * (1 - gate)))}, axis);
}

Tensor glu_rule(const GradientCall& c, int) {
  const Tensor* const inputs[] = {&c.inputs[0], &c.gradient};
  return apply_at_once(expand_glu_gradient, inputs, c.attrs);
}

constexpr std::array<std::string_view, 1> glu_attrs = {"axis"};

// clang-format off
constexpr auto activations = family({
    with_rule_at_once<leaky_relu_rule>(binary_op("leaky_relu", floating_types,
        [](auto x, auto slope) { return select(x > 0, x, x * slope); }, "x, or slope x left of 0.")),
    with_rule_at_once<elu_rule>(binary_op("elu", floating_types,
        [](auto x, auto alpha) { return elu(x, alpha); },
        "x, or alpha (e^x - 1) left of 0.")),
    by_input(unary_op("mish", floating_types, [](auto x) { return mish(x); }, "x tanh(softplus(x))."),
        [](auto& x, auto& g) {
          const Tensor t = tanh(softplus(x));
          return g * (t + x * sigmoid(x) * (1 - t * t));
        }),
    by_input(unary_op("hardsigmoid", floating_types,
        [](auto x) { return hardsigmoid(x); }, "(x + 3) / 6 limited to [0, 1]."),
        [](auto& x, auto& g) { return where((x > -3) & (x < 3), g / 6, 0); }),
    by_input(unary_op("hardswish", floating_types,
        [](auto x) { return hardswish(x); }, "x hardsigmoid(x)."),
        [](auto& x, auto& g) { return where(x <= -3, 0, where(x < 3, g * (x / 3 + 0.5), g)); }),
    with_rule(composite("glu", glu_attrs, expand_glu, "One half times the sigmoid of the other."), glu_rule, 0b1),
});
// clang-format on

[[noreturn]] void throw_setting(const char* where, const char* setting, std::string got,
                                const char* expected) {
  throw Error(
      ErrorKind::value,
      {.where = where, .what = setting, .expected = expected, .got = std::move(got), .fix = {}});
}

}  // namespace

Tensor leaky_relu(const Tensor& x, double slope) {
  return apply_floating(activations["leaky_relu"], x, slope);
}

Tensor prelu(const Tensor& x, const Tensor& slope) {
  if (slope.size() == 1) return apply_floating(activations["leaky_relu"], x, reshape(slope, {}));
  if (slope.rank() != 1 || x.rank() < 2 || x.shape()[1] != slope.size()) {
    throw Error(ErrorKind::shape,
                {.where = "prelu",
                 .what = fmt::format("slopes {} for {}", describe(slope), describe(x)),
                 .expected = "one slope, or one for each feature along axis 1",
                 .got = fmt::format("{} slopes", slope.size()),
                 .fix = {}});
  }
  Shape along = Dims::filled(x.rank(), 1);
  along[1] = slope.size();
  return apply_floating(activations["leaky_relu"], x, reshape(slope, along));
}

Tensor elu(const Tensor& x, double alpha) {
  return apply_floating(activations["elu"], x, alpha);
}

Tensor selu(const Tensor& x) {
  return elu(x, 1.6732632423543772848170429916717) * 1.0507009873554804934193349852946;
}

Tensor celu(const Tensor& x, double alpha) {
  if (alpha == 0) throw_setting("celu", "alpha", "0", "a number other than 0");
  const Tensor y = as_floats(x);
  return where(y > 0, y, expm1(where(y > 0, 0, y) / alpha) * alpha);
}

Tensor mish(const Tensor& x) {
  return apply_floating(activations["mish"], x);
}

Tensor hardsigmoid(const Tensor& x) {
  return apply_floating(activations["hardsigmoid"], x);
}

Tensor hardswish(const Tensor& x) {
  return apply_floating(activations["hardswish"], x);
}

Tensor hardtanh(const Tensor& x, double low, double high) {
  if (!(low <= high)) {
    throw_setting("hardtanh", "the limits", fmt::format("low = {} and high = {}", low, high),
                  "low <= high");
  }
  const Tensor y = as_floats(x);
  return where(y <= low, low, where(y >= high, high, y));
}

Tensor relu6(const Tensor& x) {
  return hardtanh(x, 0, 6);
}

Tensor hardshrink(const Tensor& x, double bound) {
  const Tensor y = as_floats(x);
  return where((y >= -bound) & (y <= bound), 0, y);
}

Tensor softshrink(const Tensor& x, double bound) {
  if (!(bound >= 0))
    throw_setting("softshrink", "bound", fmt::format("{}", bound), "a number that is at least 0");
  const Tensor y = as_floats(x);
  return where(y > bound, y - bound, where(y < -bound, y + bound, y * 0));
}

Tensor tanhshrink(const Tensor& x) {
  const Tensor y = as_floats(x);
  return y - tanh(y);
}

Tensor softsign(const Tensor& x) {
  const Tensor y = as_floats(x);
  return y / (abs(y) + 1);
}

Tensor glu(const Tensor& x, Integer axis) {
  const Tensor given = as_floats(x);
  return apply(activations["glu"], {&given}, {int64_t{normalize_axis("glu", axis, x.rank())}});
}

std::span<const Op> activations_ops() {
  return activations.ops;
}

}  // namespace nitinol
