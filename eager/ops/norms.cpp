// layer_norm, rms_norm and group_norm, as compositions of primitive ops.
#include "eager/ops/norms.h"

#include "core/error.h"
#include "eager/apply.h"
#include "eager/elements.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/statistics_parts.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

/// A number as an operand of x's dtype.
double as_computed(const Tensor& x, double number) {
  if (x.dtype() == f64) return number;
  const uint64_t bits = element_of(f32, number);
  return number_at(f32, &bits).to_double();
}

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

/// It is summed over what it was broadcast to.
Tensor norm_by_bias(const Tensor& gradient) {
  return gradient;
}

// ---- group_norm: layer_norm of rows [batch, groups, elements]

Tensor as_groups(const Tensor& x, const Attrs& attrs) {
  const int64_t groups = x.shape()[0] * attr<int64_t>(attrs, 0);
  return reshape(x, {x.shape()[0], attr<int64_t>(attrs, 0), groups == 0 ? 0 : x.size() / groups});
}

Attrs attrs_of_groups(const Attrs& attrs) {
  return {int64_t{1}, attr<double>(attrs, 1)};
}

Normalised centred_groups(const Tensor& x, const Attrs& attrs) {
  return centred(as_groups(x, attrs), attrs_of_groups(attrs));
}

/// A number for each feature as an operand beside x.
Tensor spread(const Tensor& of_features, const Tensor& x) {
  return beside(computed(of_features), x.rank(), 1);
}

/// Inputs: x, then weight and bias as far as the flags say.
Tensor expand_group_norm(Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  Tensor result = reshape(centred_groups(computed(x), attrs).values, x.shape());
  std::size_t next = 1;
  if (attr<bool>(attrs, 2)) result = result * spread(*inputs[next++], x);
  if (attr<bool>(attrs, 3)) result = result + spread(*inputs[next], x);
  return cast(result, result_dtype(x));
}

/// Inputs: x, the result's gradient, and weight if there is one.
Tensor group_norm_by_x(const Normalised& n, Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  Tensor g = computed(*inputs[1]);
  if (inputs.size() == 3) g = g * spread(*inputs[2], x);
  const Tensor rows = as_groups(x, attrs), of_rows = as_groups(g, attrs);
  const Tensor* const both[] = {&rows, &of_rows};
  return reshape(norm_by_x<centred>(n, both, attrs_of_groups(attrs)), x.shape());
}

Tensor sum_of_features(const Tensor& x) {
  return sum(computed(x), other_axes(x.rank(), 1));
}

Tensor group_norm_by_weight(const Normalised& n, Inputs inputs, const Attrs&) {
  const Tensor products = computed(*inputs[1]) * reshape(n.values, inputs[1]->shape());
  return cast(sum_of_features(products), inputs[2]->dtype());
}

/// How one is differentiated: its normalised values, and gradients of these.
struct NormGradient {
  Normalise normalise;
  Tensor (*by_x)(const Normalised& n, Inputs inputs, const Attrs& attrs);
  Tensor (*by_weight)(const Normalised& n, Inputs inputs, const Attrs& attrs);
  Tensor (*by_bias)(const Tensor& gradient);
};

template <const NormGradient& of>
Tensor expand_norm_by_x(Inputs inputs, const Attrs& attrs) {
  return of.by_x(of.normalise(computed(*inputs[0]), attrs), inputs, attrs);
}

template <const NormGradient& of>
Tensor expand_norm_by_weight(Inputs inputs, const Attrs& attrs) {
  return of.by_weight(of.normalise(computed(*inputs[0]), attrs), inputs, attrs);
}

template <const NormGradient& of>
Tensor norm_rule(const GradientCall& c, int k) {
  const bool has_weight = attr<bool>(c.attrs, 2);
  if (k > (has_weight ? 1 : 0)) return of.by_bias(c.gradient);
  const Tensor* const all[] = {&c.inputs[0], &c.gradient, has_weight ? &c.inputs[1] : nullptr};
  const Inputs inputs(all, has_weight ? 3 : 2);
  if (runs_at_once(inputs)) {
    const Expand expand = k == 0 ? expand_norm_by_x<of> : expand_norm_by_weight<of>;
    return apply_at_once(expand, inputs, c.attrs);
  }
  if (c.kept.empty()) {
    const Normalised n = of.normalise(computed(c.inputs[0]), c.attrs);
    c.kept = {n.values, n.scale};
  }
  const Normalised n = {.values = c.kept[0], .scale = c.kept[1]};
  return (k == 0 ? of.by_x : of.by_weight)(n, inputs, c.attrs);
}

constexpr NormGradient of_layer = {centred, norm_by_x<centred>, norm_by_weight, norm_by_bias};
constexpr NormGradient of_rms = {uncentred, norm_by_x<uncentred>, norm_by_weight, norm_by_bias};
constexpr NormGradient of_groups = {centred_groups, group_norm_by_x, group_norm_by_weight,
                                    sum_of_features};

constexpr std::array<std::string_view, 4> layer_norm_attrs = {"normalized_axes", "eps",
                                                              "has_weight", "has_bias"};
constexpr std::array<std::string_view, 4> group_norm_attrs = {"groups", "eps", "has_weight",
                                                              "has_bias"};
constexpr std::array<std::string_view, 3> rms_norm_attrs = {"normalized_axes", "eps", "has_weight"};

constexpr auto norms = family({
    with_rule(composite("layer_norm", layer_norm_attrs, expand_norm<centred>,
                        "(x - mean) / sqrt(var + eps) over the last axes.", -1),
              norm_rule<of_layer>, 0b11),
    with_rule(composite("rms_norm", rms_norm_attrs, expand_norm<uncentred>,
                        "x / sqrt(mean(x^2) + eps) over the last axes.", -1),
              norm_rule<of_rms>, 0b11),
    with_rule(composite("group_norm", group_norm_attrs, expand_group_norm,
                        "layer_norm over groups of features.", -1),
              norm_rule<of_groups>, 0b11),
});

void check_eps(std::string_view where, double eps) {
  if (eps >= 0 && std::isfinite(eps)) return;
  throw Error(ErrorKind::value, {.where = std::string(where),
                                 .what = "what is added to the variance, eps",
                                 .expected = "0 <= eps < infinity",
                                 .got = fmt::format("{}", eps),
                                 .fix = "Usual values are 1e-5 and 1e-6."});
}

void check_normalized_axes(std::string_view where, const Tensor& x, int64_t count) {
  if (count >= 1 && count <= x.rank()) return;
  throw Error(ErrorKind::shape,
              {.where = std::string(where),
               .what = fmt::format("{} normalised axes of {}", count, describe(x)),
               .expected = fmt::format("1 to {}", x.rank()),
               .got = fmt::format("{}", count),
               .fix = "They are counted from the last."});
}

void check_parameter(std::string_view where, const Tensor& x, const Tensor& parameter,
                     std::string_view name, const Shape& expected, std::string_view fix) {
  if (parameter.shape() == expected) return;
  throw Error(ErrorKind::shape,
              {.where = std::string(where),
               .what = fmt::format("{} is {} for {}", name, describe(parameter), describe(x)),
               .expected = fmt::format("shape {}", to_string(expected)),
               .got = to_string(parameter.shape()),
               .fix = std::string(fix)});
}

void check_normalized(std::string_view where, const Tensor& x, const Tensor& parameter,
                      std::string_view name, int64_t count) {
  if (!parameter.is_defined()) return;
  Shape expected;
  for (int64_t i = x.rank() - count; i < x.rank(); ++i) {
    expected.push_back(x.shape()[static_cast<int>(i)]);
  }
  check_parameter(where, x, parameter, name, expected, "It has the sizes of the normalised axes.");
}

}  // namespace

Tensor layer_norm(const Tensor& x, const LayerNorm& options) {
  const int64_t count = options.normalized_axes;
  check_eps("layer_norm", options.eps);
  check_normalized_axes("layer_norm", x, count);
  check_normalized("layer_norm", x, options.weight, "weight", count);
  check_normalized("layer_norm", x, options.bias, "bias", count);
  std::vector<const Tensor*> inputs = {&x};
  for (const Tensor* parameter : {&options.weight, &options.bias}) {
    if (parameter->is_defined()) inputs.push_back(parameter);
  }
  return apply(norms["layer_norm"], inputs,
               {count, options.eps, options.weight.is_defined(), options.bias.is_defined()});
}

Tensor rms_norm(const Tensor& x, const RmsNorm& options) {
  const int64_t count = options.normalized_axes;
  check_eps("rms_norm", options.eps);
  check_normalized_axes("rms_norm", x, count);
  check_normalized("rms_norm", x, options.weight, "weight", count);
  std::vector<const Tensor*> inputs = {&x};
  if (options.weight.is_defined()) inputs.push_back(&options.weight);
  return apply(norms["rms_norm"], inputs, {count, options.eps, options.weight.is_defined()});
}

Tensor group_norm(const Tensor& x, Integer groups, const GroupNorm& options) {
  if (x.rank() < 2 || groups < 1 || x.shape()[1] % groups != 0) {
    throw Error(ErrorKind::shape,
                {.where = "group_norm",
                 .what = "the input is " + describe(x),
                 .expected = fmt::format("[batch, features, ...] in {} groups of features",
                                         int64_t{groups}),
                 .got = to_string(x.shape()),
                 .fix = "The number of groups divides that of features."});
  }
  check_eps("group_norm", options.eps);
  std::vector<const Tensor*> inputs = {&x};
  for (const auto& [name, parameter] :
       {std::pair{"weight", &options.weight}, std::pair{"bias", &options.bias}}) {
    if (!parameter->is_defined()) continue;
    check_parameter("group_norm", x, *parameter, name, {x.shape()[1]},
                    "It has a number for each feature, axis 1 of the input.");
    inputs.push_back(parameter);
  }
  return apply(
      norms["group_norm"], inputs,
      {int64_t{groups}, options.eps, options.weight.is_defined(), options.bias.is_defined()});
}

std::span<const Op> norms_ops() {
  return norms.ops;
}

}  // namespace nitinol
