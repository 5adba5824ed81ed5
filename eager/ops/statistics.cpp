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
#include "eager/ops/statistics_parts.h"
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

/// The first elements along the axes: of what is reduced, some value.
Tensor first_of(const Tensor& x, const Dims& axes) {
  Tensor first = x;
  for (const int64_t axis : normalize_axes("var", axes, x.rank()))
    first = slice(first, axis, {0, 1});
  return first;
}

/// From near the mean, in float64. For float32 that is the first element, whose distance from the
/// mean has a square of at most the variance times the number of elements, of which float64 has
/// digits to spare (docs/decisions/0011-short-chains.md). For float64 it is the mean.
Tensor deviation_of(const Tensor& x, const Dims& axes) {
  const bool is_wide = x.dtype() == f64 || x.size() == 0;
  return cast(x - (is_wide ? mean_of(x, axes, keepdims) : first_of(x, axes)), f64);
}

/// What the squares are divided by.
double divisor_of(const Tensor& x, const Dims& axes, int64_t ddof) {
  const auto count = static_cast<double>(reduced_count("var", x, axes));
  return std::max(count - static_cast<double>(ddof), 0.0);
}

/// In float64. The square of the deviations' mean is subtracted, so that it need not be 0.
Tensor variance_of(const Tensor& x, const Dims& axes, int64_t ddof, KeepDims keep) {
  const auto count = static_cast<double>(reduced_count("var", x, axes));
  const Tensor deviation = deviation_of(x, axes);
  const Tensor total = sum(deviation, axes, keep);
  const Tensor squares = sum(deviation * deviation, axes, keep);
  return not_negative((squares - total * total / count) / divisor_of(x, axes, ddof));
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
  return cast(sqrt(result), result_dtype(x));
}

// Gradients of var and std, by which a tape keeps x, and the result of std. Inputs: x, the result's
// gradient, and that result.

/// x - mean, times a number for each row.
Tensor scaled_deviation(const Tensor& x, const Tensor& of_rows, const Attrs& attrs) {
  const Dims& axes = attr<Dims>(attrs, 0);
  const Tensor deviation = deviation_of(computed(x), axes);
  Shape column = x.shape();
  for (const int64_t axis : normalize_axes("var", axes, x.rank()))
    column[static_cast<int>(axis)] = 1;
  const Tensor factor = reshape(of_rows, column);
  return cast((deviation - mean_of(deviation, axes, keepdims)) * factor, x.dtype());
}

Tensor expand_var_gradient(Inputs inputs, const Attrs& attrs) {
  const double divisor = divisor_of(*inputs[0], attr<Dims>(attrs, 0), attr<int64_t>(attrs, 2));
  return scaled_deviation(*inputs[0], cast(*inputs[1], f64) * (2 / divisor), attrs);
}

/// 0 where nothing varies.
Tensor expand_std_gradient(Inputs inputs, const Attrs& attrs) {
  const double divisor = divisor_of(*inputs[0], attr<Dims>(attrs, 0), attr<int64_t>(attrs, 2));
  const Tensor g = cast(*inputs[1], f64), result = cast(*inputs[2], f64);
  const Tensor varies = result > 0;
  return scaled_deviation(*inputs[0], where(varies, g / (where(varies, result, 1) * divisor), 0),
                          attrs);
}

Tensor var_rule(const GradientCall& c, int) {
  const Tensor* const inputs[] = {&c.inputs[0], &c.gradient};
  return apply_at_once(expand_var_gradient, inputs, c.attrs);
}

Tensor std_rule(const GradientCall& c, int) {
  const Tensor* const inputs[] = {&c.inputs[0], &c.gradient, &c.result};
  return apply_at_once(expand_std_gradient, inputs, c.attrs);
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
  const Dims axis = {normalize_axis("softmax", attr<int64_t>(attrs, 0), given.rank())};
  if (given.size() == 0) return cast(given, result_dtype(given));
  const Tensor x = computed(given);
  const Tensor power = exp(x - max(x, axis, keepdims));
  // One division a row: one for each element took a tenth longer. It costs at most one rounding.
  return cast(power * reciprocal(sum(power, axis, keepdims)), result_dtype(given));
}

Tensor expand_log_softmax(Inputs inputs, const Attrs& attrs) {
  const Tensor& given = *inputs[0];
  const Dims axis = {normalize_axis("log_softmax", attr<int64_t>(attrs, 0), given.rank())};
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

Tensor expand_huber(Inputs inputs, const Attrs& attrs) {
  const Tensor d = abs(*inputs[0]);
  const auto delta = attr<double>(attrs, 0);
  return where(d <= delta, square(d) * attr<double>(attrs, 1),
               (d - 0.5 * delta) * attr<double>(attrs, 2));
}

/// Inputs: the differences, the result's gradient.
Tensor expand_huber_gradient(Inputs inputs, const Attrs& attrs) {
  const Tensor& d = *inputs[0];
  const Tensor is_bent = abs(d) <= attr<double>(attrs, 0);
  return *inputs[1] *
         where(is_bent, d * (2 * attr<double>(attrs, 1)), sign(d) * attr<double>(attrs, 2));
}

Tensor huber_rule(const GradientCall& c, int) {
  const Tensor* const inputs[] = {&c.inputs[0], &c.gradient};
  return apply_at_once(expand_huber_gradient, inputs, c.attrs);
}

constexpr std::array<std::string_view, 3> huber_attrs = {"delta", "bend", "slope"};
constexpr std::array<std::string_view, 1> smoothing_attrs = {"smoothing"};
constexpr std::array<std::string_view, 2> axes_keepdims_attrs = {"axes", "keepdims"};
constexpr std::array<std::string_view, 3> var_attrs = {"axes", "keepdims", "ddof"};
constexpr std::array<std::string_view, 1> axis_attrs = {"axis"};

constexpr auto statistics_in_full = std::to_array<std::string_view>(
    {"mean", "var", "std", "logsumexp", "softmax", "log_softmax", "log_likelihood"});
constexpr auto statistics = family<statistics_in_full>({
    composite("mean", axes_keepdims_attrs, expand_mean, "Mean."),
    with_rule(composite("var", var_attrs, expand_var, "Variance."), var_rule, 0b1),
    with_rule(composite("std", var_attrs, expand_std, "Standard deviation."), std_rule, 0b1, true),
    composite("logsumexp", axes_keepdims_attrs, expand_logsumexp, "ln(sum(e^x))."),
    with_rule(composite("softmax", axis_attrs, expand_softmax, "e^x / sum(e^x) along an axis."),
              rule_by_result<expand_softmax_gradient>, 0, true),
    with_rule(composite("log_softmax", axis_attrs, expand_log_softmax, "ln(softmax(x))."),
              rule_by_result<expand_log_softmax_gradient>, 0, true),
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
    with_rule(composite("huber", huber_attrs, expand_huber,
                        "A square that goes on as its tangents beyond a bound."),
              huber_rule, 0b1),
});

Tensor likelihood_rule(const GradientCall& c, int k) {
  if (k != 0) return {};
  return apply(statistics["log_likelihood_gradient"], {&c.gradient, &c.inputs[0], &c.inputs[1]},
               c.attrs);
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

Tensor smoothed(const Tensor& wanted, double smoothing) {
  if (smoothing == 0) return wanted;
  const auto classes = static_cast<double>(wanted.shape().back());
  return wanted * (1 - smoothing) + smoothing / classes;
}

Tensor log_likelihood(const Tensor& scores, const Tensor& labels, double smoothing) {
  return apply(statistics["log_likelihood"], {&scores, &labels}, {smoothing});
}

Tensor huber(const Tensor& differences, double delta, double bend, double slope) {
  return apply(statistics["huber"], {&differences}, {delta, bend, slope});
}

std::span<const Op> statistics_ops() {
  return statistics.ops;
}

}  // namespace nitinol
