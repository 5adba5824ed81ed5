#include "eager/ops/elementary.h"

#include "eager/apply.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"

#include <array>
#include <limits>
#include <string_view>

namespace nitinol {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
/// 16-bit floats compute in f32, whose next number is none of theirs: see next_number.
constexpr Types<float, double> wide_types = {DTypes{f32, f64}};

/// (x / r) / r does not overflow where r^2 would.
Tensor atan2_rule(const GradientCall& c, int k) {
  const Tensor& y = c.inputs[0];
  const Tensor& x = c.inputs[1];
  const Tensor r = hypot(y, x);
  return c.gradient * ((k == 0 ? x / r : -y / r) / r);
}
Tensor hypot_rule(const GradientCall& c, int k) {
  return c.gradient * (c.inputs[static_cast<std::size_t>(k)] / c.result);
}
/// Equal infinities have no difference.
Tensor logaddexp_rule(const GradientCall& c, int k) {
  const Tensor difference = where(c.inputs[0] == c.inputs[1], 0, c.inputs[0] - c.inputs[1]);
  return c.gradient * sigmoid(k == 0 ? difference : -difference);
}
Tensor choice_rule(const GradientCall& c, int k, const Tensor& is_first) {
  const Tensor is_a = is_first | isnan(c.inputs[1]);
  return k == 0 ? where(is_a, c.gradient, 0) : where(is_a, 0, c.gradient);
}
Tensor fmax_rule(const GradientCall& c, int k) {
  return choice_rule(c, k, c.inputs[0] >= c.inputs[1]);
}
Tensor fmin_rule(const GradientCall& c, int k) {
  return choice_rule(c, k, c.inputs[0] <= c.inputs[1]);
}

/// The derivative of digamma: by its recurrence up to 8 and more, then Stirling's series; reflected
/// on the left.
Tensor trigamma(const Tensor& x) {
  const Tensor is_left = x < 0.5;
  Tensor y = where(is_left, 1 - x, x), sum = reciprocal(y * y);
  for (int i = 0; i < 8; ++i) {
    y = y + 1;
    sum = sum + reciprocal(y * y);
  }
  y = y + 1;
  const Tensor i = reciprocal(y), u = i * i;
  Tensor tail = u * (7.0 / 6);  // numbers of Bernoulli
  for (const double number : {691.0 / 2730, 5.0 / 66, 1.0 / 30, 1.0 / 42, 1.0 / 30})
    tail = u * (number - tail);
  tail = 1.0 / 6 - tail;
  const Tensor right = sum + i + u * 0.5 + u * i * tail;
  const Tensor fraction = where(is_left, x - round(x), 0.5);
  const Tensor root = 3.1415926535897931 / sin(fraction * 3.1415926535897931);
  return where(is_left, root * root - right, right);
}

/// The largest number of a floating dtype.
double largest(DType dtype) {
  if (dtype == f16) return 65504;
  if (dtype == bf16) return 0x1.fep127;
  if (dtype == f32) return std::numeric_limits<float>::max();
  return std::numeric_limits<double>::max();
}

constexpr std::array<std::string_view, 3> nan_to_num_attrs = {"nan", "posinf", "neginf"};

Tensor expand_nan_to_num(Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  const Tensor above = where(x == infinity, attr<double>(attrs, 1), x);
  const Tensor finite = where(x == -infinity, attr<double>(attrs, 2), above);
  return where(isnan(x), attr<double>(attrs, 0), finite);
}

/// From the nearer end, so that either is exact. Inputs: both ends, the weight of the second.
Tensor expand_lerp(Inputs inputs, const Attrs&) {
  const Tensor &a = *inputs[0], &b = *inputs[1], &weight = *inputs[2];
  const Tensor distance = b - a;
  return where(weight < 0.5, a + weight * distance, b - (1 - weight) * distance);
}
Tensor lerp_rule(const GradientCall& c, int k) {
  if (k == 2) return c.gradient * (c.inputs[1] - c.inputs[0]);
  return c.gradient * (k == 0 ? 1 - c.inputs[2] : c.inputs[2]);
}

// clang-format off
constexpr auto elementary_in_full = std::to_array<std::string_view>({"asin", "acos", "sinh", "cosh", "acosh", "atanh", "erfinv", "lgamma", "digamma", "logaddexp"});
constexpr auto elementary = family<elementary_in_full>({
    by_result(unary_op("cbrt", floating_types, [](auto x) { return cbrt(x); }, "Cube root."),
        [](auto& y, auto& g) { return g / (y * y * 3); }),
    by_input(unary_op("asin", floating_types, [](auto x) { return asin(x); }, "The angle whose sine is x."),
        [](auto& x, auto& g) { return g * rsqrt(1 - x * x); }),
    by_input(unary_op("acos", floating_types, [](auto x) { return acos(x); }, "The angle whose cosine is x."),
        [](auto& x, auto& g) { return -g * rsqrt(1 - x * x); }),
    by_input(unary_op("atan", floating_types, [](auto x) { return atan(x); }, "The angle whose tangent is x."),
        [](auto& x, auto& g) { return g / (x * x + 1); }),
    by_input(unary_op("sinh", floating_types, [](auto x) { return sinh(x); }, "Hyperbolic sine."),
        [](auto& x, auto& g) { return g * cosh(x); }),
    by_input(unary_op("cosh", floating_types, [](auto x) { return cosh(x); }, "Hyperbolic cosine."),
        [](auto& x, auto& g) { return g * sinh(x); }),
    by_input(unary_op("asinh", floating_types, [](auto x) { return asinh(x); }, "Inverse hyperbolic sine."),
        [](auto& x, auto& g) { return g * rsqrt(x * x + 1); }),
    by_input(unary_op("acosh", floating_types, [](auto x) { return acosh(x); }, "Inverse hyperbolic cosine."),
        [](auto& x, auto& g) { return g * rsqrt(x * x - 1); }),
    by_input(unary_op("atanh", floating_types, [](auto x) { return atanh(x); }, "Inverse hyperbolic tangent."),
        [](auto& x, auto& g) { return g / (1 - x * x); }),
    by_input(unary_op("erfc", floating_types, [](auto x) { return erfc(x); }, "1 - erf(x)."),
        [](auto& x, auto& g) { return g * (exp(-x * x) * -1.1283791670955126); }),
    by_result(unary_op("erfinv", floating_types, [](auto x) { return erfinv(x); }, "The number whose erf is x."),
        [](auto& y, auto& g) { return g * (exp(y * y) * 0.88622692545275801); }),
    by_input(unary_op("lgamma", floating_types, [](auto x) { return lgamma(x); }, "ln(|gamma(x)|)."),
        [](auto& x, auto& g) { return g * digamma(x); }),
    by_input(unary_op("digamma", floating_types, [](auto x) { return digamma(x); }, "The derivative of lgamma."),
        [](auto& x, auto& g) { return g * trigamma(x); }),
    predicate(unary_op("signbit", number_types, [](auto x) { return signbit(x); }, "Whether the sign is negative.")),
    with_rule_at_once<atan2_rule>(binary_op("atan2", floating_types,
        [](auto y, auto x) { return atan2(y, x); }, "The angle of a point.")),
    with_rule_at_once<hypot_rule, true>(binary_op("hypot", floating_types,
        [](auto a, auto b) { return hypot(a, b); }, "sqrt(a^2 + b^2).")),
    with_rule_at_once<logaddexp_rule>(binary_op("logaddexp", floating_types,
        [](auto a, auto b) { return logaddexp(a, b); }, "ln(e^a + e^b).")),
    without_gradient(binary_op("nextafter", wide_types,
        [](auto a, auto b) { return nextafter(a, b); }, "The next number after a towards b.")),
    with_rule_at_once<fmax_rule>(binary_op("fmax", floating_types,
        [](auto a, auto b) { return fmax(a, b); }, "The larger one that is not NaN.")),
    with_rule_at_once<fmin_rule>(binary_op("fmin", floating_types,
        [](auto a, auto b) { return fmin(a, b); }, "The smaller one that is not NaN.")),
    by_input(composite("nan_to_num", nan_to_num_attrs, expand_nan_to_num, "x with numbers in the place of NaN and infinities."),
        [](auto& x, auto& g) { return where(isfinite(x), g, 0); }),
    with_rule_at_once<lerp_rule>(composite("lerp", {}, expand_lerp, "a + weight * (b - a).", 3)),
});
// clang-format on

/// fmax or fmin; of numbers without a NaN `other`, maximum or minimum.
Tensor ignoring_nan(const Op& op, Tensor (*other)(const Argument&, const Argument&),
                    const Argument& a, const Argument& b) {
  const DType dtype = common_dtype(op.name, {&a, &b});
  return is_floating(dtype) ? apply_promoted(op, a, b, dtype) : other(a, b);
}

/// nextafter. 16-bit numbers compute in f32: there a step of 5/8 to 5/4 of the distance rounds to
/// the next one, on either side of a power of 2, and the smallest number is a step below.
Tensor next_number(const Argument& a, const Argument& b, DType dtype) {
  const Op& op = elementary["nextafter"];
  if (dtype != f16 && dtype != bf16) return apply_promoted(op, a, b, dtype);
  const double part = dtype == f16 ? 0x1.4p-11 : 0x1.4p-8;
  const double smallest = dtype == f16 ? 0x1p-24 : 0x1p-133;
  const Promoted narrow(op.name, a, dtype), target(op.name, b, dtype);
  const Tensor x = cast(*narrow.get(), f32), y = cast(*target.get(), f32);
  const Tensor step = maximum(abs(x) * part, smallest);
  Tensor next = where(isinf(x), copysign(largest(dtype), x), where(x < y, x + step, x - step));
  next = where(next == 0, copysign(next, x), next);
  next = where(x == y, y, where(isnan(y), y, next));
  // Of a number and itself it is the number, for which no gradient flows.
  return cast(apply(op, {&next, &next}), dtype);
}

}  // namespace

// clang-format off
Tensor cbrt(const Tensor& x) { return apply_floating(elementary["cbrt"], x); }
Tensor asin(const Tensor& x) { return apply_floating(elementary["asin"], x); }
Tensor acos(const Tensor& x) { return apply_floating(elementary["acos"], x); }
Tensor atan(const Tensor& x) { return apply_floating(elementary["atan"], x); }
Tensor sinh(const Tensor& x) { return apply_floating(elementary["sinh"], x); }
Tensor cosh(const Tensor& x) { return apply_floating(elementary["cosh"], x); }
Tensor asinh(const Tensor& x) { return apply_floating(elementary["asinh"], x); }
Tensor acosh(const Tensor& x) { return apply_floating(elementary["acosh"], x); }
Tensor atanh(const Tensor& x) { return apply_floating(elementary["atanh"], x); }
Tensor erfc(const Tensor& x) { return apply_floating(elementary["erfc"], x); }
Tensor erfinv(const Tensor& x) { return apply_floating(elementary["erfinv"], x); }
Tensor lgamma(const Tensor& x) { return apply_floating(elementary["lgamma"], x); }
Tensor digamma(const Tensor& x) { return apply_floating(elementary["digamma"], x); }
Tensor atan2(const Argument& a, const Argument& b) { return apply_floating(elementary["atan2"], a, b); }
Tensor hypot(const Argument& a, const Argument& b) { return apply_floating(elementary["hypot"], a, b); }
Tensor logaddexp(const Argument& a, const Argument& b) { return apply_floating(elementary["logaddexp"], a, b); }
Tensor nextafter(const Argument& a, const Argument& b) { return next_number(a, b, floating_dtype("nextafter", {&a, &b})); }
Tensor fmax(const Argument& a, const Argument& b) { return ignoring_nan(elementary["fmax"], maximum, a, b); }
Tensor fmin(const Argument& a, const Argument& b) { return ignoring_nan(elementary["fmin"], minimum, a, b); }
Tensor frac(const Tensor& x) { return x - trunc(x); }
Tensor deg2rad(const Tensor& x) { return x * 0.017453292519943295; }
Tensor rad2deg(const Tensor& x) { return x * 57.295779513082323; }
Tensor isposinf(const Tensor& x) { return x == infinity; }
Tensor isneginf(const Tensor& x) { return x == -infinity; }
// clang-format on

Tensor log_sigmoid(const Tensor& x) {
  return -softplus(-as_floats(x));
}

Tensor positive(const Tensor& x) {
  check_dtype("positive", numeric, x);
  return x;
}

Tensor conj(const Tensor& x) {
  check_dtype("conj", numeric, x);
  return x;
}

Tensor real(const Tensor& x) {
  check_dtype("real", numeric, x);
  return x;
}

Tensor imag(const Tensor& x) {
  check_dtype("imag", numeric, x);
  return zeros(x.shape(), x.dtype(), x.device());
}

Tensor signbit(const Tensor& x) {
  return x.dtype() == boolean ? full(x.shape(), false, boolean, x.device())
                              : apply(elementary["signbit"], {&x});
}

Tensor nan_to_num(const Tensor& x, double nan, std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!is_floating(x.dtype())) return x;
  const double most = largest(x.dtype());
  return apply(elementary["nan_to_num"], {&x},
               {nan, posinf.value_or(most), neginf.value_or(-most)});
}

/// Where x is 0 and the logarithm infinite or NaN, that of 1 is taken: its gradients are finite.
Tensor xlogy(const Argument& x, const Argument& y) {
  const Tensor has_none = (y <= 0) | (y == infinity);
  return x * log(where((x == 0) & has_none, 1, y));
}

Tensor heaviside(const Argument& x, const Argument& value) {
  return where(x < 0, 0, where(x > 0, 1, where(x == 0, value, x)));
}

Tensor lerp(const Argument& a, const Argument& b, const Argument& weight) {
  const DType dtype = floating_dtype("lerp", {&a, &b, &weight});
  const Promoted x("lerp", a, dtype), y("lerp", b, dtype), of_y("lerp", weight, dtype);
  return apply(elementary["lerp"], {x.get(), y.get(), of_y.get()});
}

Tensor isclose(const Argument& a, const Argument& b, double rtol, double atol, bool equal_nan) {
  const DType common = common_dtype("isclose", {&a, &b});
  const DType dtype = is_floating(common) ? common : f64;
  const Promoted x("isclose", a, dtype), y("isclose", b, dtype);
  const Tensor &left = *x.get(), &right = *y.get();
  const Tensor is_near = abs(left - right) <= abs(right) * rtol + atol;
  const Tensor close = (left == right) | (is_near & isfinite(right));
  return equal_nan ? close | (isnan(left) & isnan(right)) : close;
}

Tensor allclose(const Argument& a, const Argument& b, double rtol, double atol, bool equal_nan) {
  return all(isclose(a, b, rtol, atol, equal_nan));
}

Tensor array_equal(const Argument& a, const Argument& b, bool equal_nan) {
  const DType dtype = common_dtype("array_equal", {&a, &b});
  const Promoted x("array_equal", a, dtype), y("array_equal", b, dtype);
  const Tensor &left = *x.get(), &right = *y.get();
  if (left.shape() != right.shape()) return zeros({}, boolean, left.device());
  const Tensor is_equal = left == right;
  if (!equal_nan || !is_floating(dtype)) return all(is_equal);
  return all(is_equal | (isnan(left) & isnan(right)));
}

std::span<const Op> elementary_ops() {
  return elementary.ops;
}

}  // namespace nitinol
