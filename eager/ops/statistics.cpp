// Reductions and normalisations that are compositions of primitive ops.
//
// Example: softmax(x) = e / sum(e), e = exp(x - max(x)). Each is a composite op, so that
// documentation and tests find it; interpreters only see what it expands to.
#include "eager/ops/statistics.h"

#include "eager/apply.h"
#include "eager/elements.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/likelihood.h"
#include "eager/ops/reduce.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace nitinol {
namespace {

/// The dtype of the result: that of x if floating, else f32.
DType result_dtype(const Tensor& x) {
  return is_floating(x.dtype()) ? x.dtype() : f32;
}

/// x in the dtype that is computed in: f32 or f64.
Tensor computed(const Tensor& x) {
  return cast(x, x.dtype() == f64 ? f64 : f32);
}

int64_t reduced_count(std::string_view where, const Tensor& x, const Dims& axes) {
  int64_t count = 1;
  for (const int64_t axis : normalize_axes(where, axes, x.rank())) {
    count *= x.shape()[static_cast<int>(axis)];
  }
  return count;
}

Tensor mean_of(const Tensor& x, const Dims& axes, KeepDims keep) {
  return sum(x, axes, keep) / static_cast<double>(reduced_count("mean", x, axes));
}

/// A number as an operand of x's dtype.
double as_computed(const Tensor& x, double number) {
  if (x.dtype() == f64) return number;
  const uint64_t bits = element_of(f32, number);
  return number_at(f32, &bits).to_double();
}

Tensor not_negative(const Tensor& variance) {
  return where(variance < 0, 0, variance);
}

/// sqrt(variance), whose gradient is 0 where it is 0, as it is where nothing varies.
Tensor root_of(const Tensor& variance) {
  const Tensor varies = variance > 0;
  return where(varies, sqrt(where(varies, variance, 1)), variance);
}

/// The first elements along the axes: of what is reduced, some value.
Tensor first_of(const Tensor& x, const Dims& axes) {
  Tensor first = x;
  for (const int64_t axis : normalize_axes("var", axes, x.rank()))
    first = slice(first, axis, {0, 1});
  return first;
}

/// In float64. The square of the deviations' mean is subtracted, so that it need not be 0: whatever
/// x is subtracted from is only near the mean. For float32 that is the first element, and squares
/// and sums are float64: its square is at most the variance times the number of elements, of which
/// float64 has digits to spare (docs/decisions/0011-short-chains.md). For float64 it is the mean.
Tensor variance_of(const Tensor& x, const Dims& axes, int64_t ddof, KeepDims keep) {
  const auto count = static_cast<double>(reduced_count("var", x, axes));
  const bool is_wide = x.dtype() == f64 || x.size() == 0;
  const Tensor deviation =
      cast(x - (is_wide ? mean_of(x, axes, keepdims) : first_of(x, axes)), f64);
  const Tensor total = sum(deviation, axes, keep);
  const Tensor squares = sum(deviation * deviation, axes, keep);
  const double rest = std::max(count - static_cast<double>(ddof), 0.0);
  return not_negative((squares - total * total / count) / rest);
}

/// A maximum that may be subtracted: 0 where it is infinite or NaN, so that inf - inf does not
/// occur.
Tensor finite_max(const Tensor& x, const Dims& axes) {
  const Tensor most = max(x, axes, keepdims);
  return where(isfinite(most), most, 0);
}

KeepDims keep_of(const Attrs& attrs, std::size_t i) {
  return attr<bool>(attrs, i) ? KeepDims::yes : KeepDims::no;
}

Tensor expand_mean(Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  return cast(mean_of(computed(x), attr<Dims>(attrs, 0), keep_of(attrs, 1)), result_dtype(x));
}

Tensor expand_var(Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  const Tensor result =
      variance_of(computed(x), attr<Dims>(attrs, 0), attr<int64_t>(attrs, 2), keep_of(attrs, 1));
  return cast(result, result_dtype(x));
}

Tensor expand_std(Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  const Tensor result =
      variance_of(computed(x), attr<Dims>(attrs, 0), attr<int64_t>(attrs, 2), keep_of(attrs, 1));
  return cast(root_of(result), result_dtype(x));
}

Tensor expand_logsumexp(Inputs inputs, const Attrs& attrs) {
  const Tensor& given = *inputs[0];
  const Dims& axes = attr<Dims>(attrs, 0);
  const Tensor x = computed(given);
  const Tensor most = finite_max(x, axes);
  const Tensor total = log(sum(exp(x - most), axes, keepdims)) + most;
  const Tensor result = keep_of(attrs, 1) == keepdims ? total : squeeze(total, axes);
  return cast(result, result_dtype(given));
}

Tensor expand_softmax(Inputs inputs, const Attrs& attrs) {
  const Tensor& given = *inputs[0];
  const Dims axis = {attr<int64_t>(attrs, 0)};
  if (given.size() == 0) return cast(given, result_dtype(given));
  const Tensor x = computed(given);
  const Tensor power = exp(x - max(x, axis, keepdims));
  // One division a row: one for each element took a tenth longer. It costs at most one rounding.
  return cast(power * reciprocal(sum(power, axis, keepdims)), result_dtype(given));
}

Tensor expand_log_softmax(Inputs inputs, const Attrs& attrs) {
  const Tensor& given = *inputs[0];
  const Dims axis = {attr<int64_t>(attrs, 0)};
  if (given.size() == 0) return cast(given, result_dtype(given));
  const Tensor x = computed(given);
  const Tensor shifted = x - max(x, axis, keepdims);
  return cast(shifted - log(sum(exp(shifted), axis, keepdims)), result_dtype(given));
}

// Gradients by what softmax and log_softmax give: a tape keeps that, and none of what they expand
// to. Inputs: the result and its gradient.

Tensor expand_softmax_gradient(Inputs inputs, const Attrs& attrs) {
  const Tensor y = computed(*inputs[0]), g = computed(*inputs[1]);
  return y * (g - sum(y * g, {attr<int64_t>(attrs, 0)}, keepdims));
}

Tensor expand_log_softmax_gradient(Inputs inputs, const Attrs& attrs) {
  const Tensor y = computed(*inputs[0]), g = computed(*inputs[1]);
  return g - exp(y) * sum(g, {attr<int64_t>(attrs, 0)}, keepdims);
}

template <Expand expand>
Tensor rule_by_result(const GradientCall& c, int) {
  const Tensor* const inputs[] = {&c.result, &c.gradient};
  return apply_at_once(expand, inputs, c.attrs);
}

// ---- layer_norm and rms_norm

/// x without weight and bias, and what it was multiplied by.
struct Normalised {
  Tensor values, scale;
};
using Normalise = Normalised (*)(const Tensor& x, const Attrs& attrs);

Dims normalised_axes(const Attrs& attrs) {
  Dims axes;
  for (int64_t i = attr<int64_t>(attrs, 0); i > 0; --i) axes.push_back(-i);
  return axes;
}

Normalised centred(const Tensor& x, const Attrs& attrs) {
  const Dims axes = normalised_axes(attrs);
  const Tensor deviation = x - mean_of(x, axes, keepdims);
  const double count = as_computed(x, static_cast<double>(reduced_count("layer_norm", x, axes)));
  // The mean was rounded: `shift` is what it lacks. A row's few numbers are computed in float64.
  const Tensor total = cast(sum(deviation, axes, keepdims), f64);
  const Tensor squares = cast(sum(deviation * deviation, axes, keepdims), f64);
  const Tensor shift = total / count;
  const Tensor variance = not_negative((squares - shift * total) / count);
  const Tensor scale = cast(rsqrt(variance + as_computed(x, attr<double>(attrs, 1))), x.dtype());
  return {.values = (deviation - cast(shift, x.dtype())) * scale, .scale = scale};
}

Normalised uncentred(const Tensor& x, const Attrs& attrs) {
  const Tensor scale =
      rsqrt(mean_of(x * x, normalised_axes(attrs), keepdims) + attr<double>(attrs, 1));
  return {.values = x * scale, .scale = scale};
}

/// Inputs: x, then weight and bias as far as the flags say.
template <Normalise normalise>
Tensor expand_norm(Inputs inputs, const Attrs& attrs) {
  const Tensor& given = *inputs[0];
  Tensor result = normalise(computed(given), attrs).values;
  std::size_t next = 1;
  if (attr<bool>(attrs, 2)) result = result * computed(*inputs[next++]);
  if (attrs.size() > 3 && attr<bool>(attrs, 3)) result = result + computed(*inputs[next]);
  return cast(result, result_dtype(given));
}

// Their gradients. Inputs: x, the result's gradient, and weight if there is one. A tape keeps x and
// weight, and goes over each row again.

/// With g the gradient times weight: (g - mean(g) - n mean(g n)) scale of n, the normalised values;
/// where no mean was subtracted, without that of g.
template <Normalise normalise>
Tensor norm_by_x(const Normalised& n, Inputs inputs, const Attrs& attrs) {
  const Dims axes = normalised_axes(attrs);
  Tensor g = computed(*inputs[1]);
  if (inputs.size() == 3) g = g * computed(*inputs[2]);
  Tensor rest = n.values * mean_of(g * n.values, axes, keepdims);
  if constexpr (normalise == centred) rest = rest + mean_of(g, axes, keepdims);
  return cast((g - rest) * n.scale, inputs[0]->dtype());
}

Tensor norm_by_weight(const Normalised& n, Inputs inputs, const Attrs& attrs) {
  const Tensor products = computed(*inputs[1]) * n.values;
  Dims rows;
  for (int64_t i = 0; i < products.rank() - attr<int64_t>(attrs, 0); ++i) rows.push_back(i);
  return cast(rows.empty() ? products : sum(products, rows), inputs[2]->dtype());
}

template <Normalise normalise>
Tensor expand_norm_by_x(Inputs inputs, const Attrs& attrs) {
  return norm_by_x<normalise>(normalise(computed(*inputs[0]), attrs), inputs, attrs);
}

template <Normalise normalise>
Tensor expand_norm_by_weight(Inputs inputs, const Attrs& attrs) {
  return norm_by_weight(normalise(computed(*inputs[0]), attrs), inputs, attrs);
}

template <Normalise normalise>
Tensor norm_rule(const GradientCall& c, int k) {
  const bool has_weight = attr<bool>(c.attrs, 2);
  if (k > (has_weight ? 1 : 0)) return c.gradient;  // by the bias
  const Tensor* const all[] = {&c.inputs[0], &c.gradient, has_weight ? &c.inputs[1] : nullptr};
  const Inputs inputs(all, has_weight ? 3 : 2);
  if (runs_at_once(inputs)) {
    const Expand expand = k == 0 ? expand_norm_by_x<normalise> : expand_norm_by_weight<normalise>;
    return apply_at_once(expand, inputs, c.attrs);
  }
  if (c.kept.empty()) {
    const Normalised n = normalise(computed(c.inputs[0]), c.attrs);
    c.kept = {n.values, n.scale};
  }
  const Normalised n = {.values = c.kept[0], .scale = c.kept[1]};
  return k == 0 ? norm_by_x<normalise>(n, inputs, c.attrs) : norm_by_weight(n, inputs, c.attrs);
}

// The gradient of log_likelihood() is what the labels want less softmax(scores). As a rule of one
// op it is one step of an eager backward pass, too, and not a dozen, each as large as the scores.

/// Where the last axis is the row's label.
Tensor is_label(const Tensor& scores, const Tensor& labels) {
  return unsqueeze(labels, -1) == arange(scores.shape().back(), {}, scores.device());
}

void check_labels(const Tensor& scores, const Tensor& labels) {
  static_cast<void>(normalize_axis("log_likelihood", -1, scores.rank()));
  if (!labels.spec().is_weak) return;
  throw Error(ErrorKind::dtype, {.where = "log_likelihood",
                                 .what = fmt::format("labels {}", describe(labels)),
                                 .expected = "a dtype of their own",
                                 .got = "host numbers"});
}

Tensor expand_likelihood(Inputs inputs, const Attrs& attrs) {
  const Tensor& scores = *inputs[0];
  check_labels(scores, *inputs[1]);
  const double smoothing = attr<double>(attrs, 0);
  const Tensor logarithms = log_softmax(scores), is_wanted = is_label(scores, *inputs[1]);
  if (smoothing == 0) return sum(where(is_wanted, logarithms, 0), {-1});
  return sum(smoothed(cast(is_wanted, logarithms.dtype()), smoothing) * logarithms, {-1});
}

/// Inputs: the result's gradient, scores, labels.
Tensor expand_likelihood_gradient(Inputs inputs, const Attrs& attrs) {
  const Tensor& scores = *inputs[1];
  check_labels(scores, *inputs[2]);
  const Tensor likely = softmax(scores);
  const Tensor wanted = cast(is_label(scores, *inputs[2]), likely.dtype());
  return unsqueeze(*inputs[0], -1) * (smoothed(wanted, attr<double>(attrs, 0)) - likely);
}

Tensor likelihood_rule(const GradientCall& c, int k);

constexpr std::array<std::string_view, 1> smoothing_attrs = {"smoothing"};
constexpr std::array<std::string_view, 2> axes_keepdims_attrs = {"axes", "keepdims"};
constexpr std::array<std::string_view, 3> var_attrs = {"axes", "keepdims", "ddof"};
constexpr std::array<std::string_view, 1> axis_attrs = {"axis"};
constexpr std::array<std::string_view, 4> layer_norm_attrs = {"normalized_axes", "eps",
                                                              "has_weight", "has_bias"};
constexpr std::array<std::string_view, 3> rms_norm_attrs = {"normalized_axes", "eps", "has_weight"};

constexpr Op composite(std::string_view name, std::span<const std::string_view> attr_names,
                       Expand expand, std::string_view summary, int arity = 1) {
  return {.name = name,
          .kind = OpKind::composite,
          .arity = arity,
          .attr_names = attr_names,
          .expand = expand,
          .summary = summary};
}

constexpr auto statistics_in_full = std::to_array<std::string_view>(
    {"mean", "var", "std", "logsumexp", "softmax", "log_softmax", "log_likelihood"});
constexpr auto statistics = family<statistics_in_full>({
    composite("mean", axes_keepdims_attrs, expand_mean, "Mean."),
    composite("var", var_attrs, expand_var, "Variance."),
    composite("std", var_attrs, expand_std, "Standard deviation."),
    composite("logsumexp", axes_keepdims_attrs, expand_logsumexp, "ln(sum(e^x))."),
    with_rule(composite("softmax", axis_attrs, expand_softmax, "e^x / sum(e^x) along an axis."),
              rule_by_result<expand_softmax_gradient>, 0, true),
    with_rule(composite("log_softmax", axis_attrs, expand_log_softmax, "ln(softmax(x))."),
              rule_by_result<expand_log_softmax_gradient>, 0, true),
    with_rule(composite("layer_norm", layer_norm_attrs, expand_norm<centred>,
                        "(x - mean) / sqrt(var + eps) over the last axes.", -1),
              norm_rule<centred>, 0b11),
    with_rule(composite("rms_norm", rms_norm_attrs, expand_norm<uncentred>,
                        "x / sqrt(mean(x^2) + eps) over the last axes.", -1),
              norm_rule<uncentred>, 0b11),
    {.name = "log_likelihood",
     .kind = OpKind::composite,
     .arity = 2,
     .attr_names = smoothing_attrs,
     .expand = expand_likelihood,
     .gradient = {.rule = likelihood_rule, .looks_at_inputs = 0b11},
     .summary = "ln(softmax(x)) at labels, which are smoothed."},
    {.name = "log_likelihood_gradient",
     .kind = OpKind::composite,
     .arity = 3,
     .attr_names = smoothing_attrs,
     .expand = expand_likelihood_gradient,
     .summary = "The gradient of log_likelihood by x, from that of its result."},
});

Tensor likelihood_rule(const GradientCall& c, int k) {
  if (k != 0) return {};
  return apply(statistics["log_likelihood_gradient"], {&c.gradient, &c.inputs[0], &c.inputs[1]},
               c.attrs);
}

void check_norm(std::string_view where, const Tensor& x, int64_t count, double eps) {
  if (!(eps >= 0 && std::isfinite(eps))) {
    throw Error(ErrorKind::value, {.where = std::string(where),
                                   .what = "what is added to the variance, eps",
                                   .expected = "0 <= eps < infinity",
                                   .got = fmt::format("{}", eps),
                                   .fix = "Usual values are 1e-5 and 1e-6."});
  }
  if (count >= 1 && count <= x.rank()) return;
  throw Error(ErrorKind::shape,
              {.where = std::string(where),
               .what = fmt::format("{} normalised axes of {}", count, describe(x)),
               .expected = fmt::format("1 to {}", x.rank()),
               .got = fmt::format("{}", count),
               .fix = "They are counted from the last."});
}

void check_normalized(std::string_view where, const Tensor& x, const Tensor& parameter,
                      std::string_view name, int64_t count) {
  Shape expected;
  for (int64_t i = x.rank() - count; i < x.rank(); ++i) {
    expected.push_back(x.shape()[static_cast<int>(i)]);
  }
  if (!parameter.is_defined() || parameter.shape() == expected) return;
  throw Error(ErrorKind::shape,
              {.where = std::string(where),
               .what = fmt::format("{} is {} for {}", name, describe(parameter), describe(x)),
               .expected = fmt::format("shape {}", to_string(expected)),
               .got = to_string(parameter.shape()),
               .fix = "It has the sizes of the normalised axes."});
}

void check_ddof(std::string_view where, int64_t ddof) {
  if (ddof >= 0) return;
  throw Error(ErrorKind::value, {.where = std::string(where),
                                 .what = "what is subtracted from the number of elements, ddof",
                                 .expected = "at least 0",
                                 .got = fmt::format("{}", ddof),
                                 .fix = "0 is the variance of the elements, 1 the estimate for "
                                        "what they were drawn from."});
}

}  // namespace

Tensor mean(const Tensor& x, const Axes& axes, KeepDims keep) {
  return apply(statistics["mean"], {&x}, {axes.dims(), keep == keepdims});
}

Tensor var(const Tensor& x, const Axes& axes, Integer ddof, KeepDims keep) {
  check_ddof("var", ddof);
  return apply(statistics["var"], {&x}, {axes.dims(), keep == keepdims, int64_t{ddof}});
}

Tensor stddev(const Tensor& x, const Axes& axes, Integer ddof, KeepDims keep) {
  check_ddof("stddev", ddof);
  return apply(statistics["std"], {&x}, {axes.dims(), keep == keepdims, int64_t{ddof}});
}

Tensor logsumexp(const Tensor& x, const Axes& axes, KeepDims keep) {
  return apply(statistics["logsumexp"], {&x}, {axes.dims(), keep == keepdims});
}

Tensor softmax(const Tensor& x, Integer axis) {
  return apply(statistics["softmax"], {&x}, {int64_t{normalize_axis("softmax", axis, x.rank())}});
}

Tensor log_softmax(const Tensor& x, Integer axis) {
  return apply(statistics["log_softmax"], {&x},
               {int64_t{normalize_axis("log_softmax", axis, x.rank())}});
}

Tensor layer_norm(const Tensor& x, const LayerNorm& options) {
  const int64_t count = options.normalized_axes;
  check_norm("layer_norm", x, count, options.eps);
  check_normalized("layer_norm", x, options.weight, "weight", count);
  check_normalized("layer_norm", x, options.bias, "bias", count);
  std::vector<const Tensor*> inputs = {&x};
  for (const Tensor* parameter : {&options.weight, &options.bias}) {
    if (parameter->is_defined()) inputs.push_back(parameter);
  }
  return apply(statistics["layer_norm"], inputs,
               {count, options.eps, options.weight.is_defined(), options.bias.is_defined()});
}

Tensor rms_norm(const Tensor& x, const RmsNorm& options) {
  const int64_t count = options.normalized_axes;
  check_norm("rms_norm", x, count, options.eps);
  check_normalized("rms_norm", x, options.weight, "weight", count);
  std::vector<const Tensor*> inputs = {&x};
  if (options.weight.is_defined()) inputs.push_back(&options.weight);
  return apply(statistics["rms_norm"], inputs, {count, options.eps, options.weight.is_defined()});
}

Tensor smoothed(const Tensor& wanted, double smoothing) {
  if (smoothing == 0) return wanted;
  const auto classes = static_cast<double>(wanted.shape().back());
  return wanted * (1 - smoothing) + smoothing / classes;
}

Tensor log_likelihood(const Tensor& scores, const Tensor& labels, double smoothing) {
  return apply(statistics["log_likelihood"], {&scores, &labels}, {smoothing});
}

std::span<const Op> statistics_ops() {
  return statistics.ops;
}

}  // namespace nitinol
