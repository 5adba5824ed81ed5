// Images are normalised in the order in which convolutions leave them, channels last: the sums go
// over rows of all features at once, and nothing is transposed.
//
// A batch's mean is rounded: `shift` is what it lacks. Each op is a pass over the batch, and so is
// each of its gradients; a tape keeps the batch and numbers of its features.
#include "eager/ops/batch_norm.h"

#include "core/error.h"
#include "eager/apply.h"
#include "eager/channels_last.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/reduce.h"
#include "eager/ops/statistics.h"
#include "eager/ops/statistics_parts.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace nitinol {
namespace {

int64_t feature_axis(int64_t rank, const Attrs& attrs) {
  return normalize_axis("batch_norm", attr<int64_t>(attrs, 0), static_cast<int>(rank));
}

/// Of x, what its features are not along.
Dims reduced_axes(const Tensor& x, const Attrs& attrs) {
  return other_axes(x.rank(), feature_axis(x.rank(), attrs));
}

/// Elements of each feature.
double count_of(Shape shape, const Attrs& attrs) {
  shape[static_cast<int>(feature_axis(shape.size(), attrs))] = 1;
  return static_cast<double>(element_count(shape));
}

/// A number for each feature as an operand beside what has this rank.
Tensor spread(const Tensor& of_features, int64_t rank, const Attrs& attrs) {
  return beside(of_features, rank, feature_axis(rank, attrs));
}
Tensor spread(const Tensor& of_features, const Tensor& x, const Attrs& attrs) {
  return spread(of_features, x.rank(), attrs);
}

/// The operands of batch_norm: x, mean, variance, and shift, weight and bias as far as the flags
/// say. Those of its gradients are these without bias, then the result's gradient.
struct Operands {
  Operands(Inputs inputs, const Attrs& attrs)
      : x(*inputs[0]), mean(*inputs[1]), variance(*inputs[2]) {
    if (attr<bool>(attrs, 2)) shift = *inputs[count++];
    if (attr<bool>(attrs, 3)) weight = *inputs[count++];
  }

  Tensor x, mean, variance, shift, weight;
  std::size_t count = 3;  ///< of these

  /// x - mean.
  [[nodiscard]] Tensor deviation(const Attrs& attrs) const {
    const Tensor from_rounded = widened(x) - spread(widened(mean), x, attrs);
    return shift.is_defined() ? from_rounded - spread(shift, x, attrs) : from_rounded;
  }
  /// 1 / sqrt(variance + eps).
  [[nodiscard]] Tensor scale(const Attrs& attrs) const {
    return rsqrt(widened(variance) + attr<double>(attrs, 1));
  }
  /// What the deviation is multiplied by.
  [[nodiscard]] Tensor factor(const Attrs& attrs) const {
    return weight.is_defined() ? widened(weight) * scale(attrs) : scale(attrs);
  }
};

Tensor expand_mean(Inputs inputs, const Attrs& attrs) {
  return mean(widened(*inputs[0]), reduced_axes(*inputs[0], attrs));
}

Tensor mean_rule(const GradientCall& c, int) {
  const Shape& shape = c.input_specs[0].shape;
  return spread(c.gradient / count_of(shape, c.attrs), shape.size(), c.attrs);
}

/// Inputs: x and its mean.
Tensor expand_shift(Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  return mean(widened(x) - spread(*inputs[1], x, attrs), reduced_axes(x, attrs));
}

/// Inputs: x, its mean and shift.
Tensor expand_variance(Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  const Tensor deviation = widened(x) - spread(*inputs[1], x, attrs);
  return mean(square(deviation), reduced_axes(x, attrs)) - square(*inputs[2]);
}

/// By x, as whose own mean and shift are given it changes nothing by them. Inputs: those, and the
/// variance's gradient.
Tensor expand_variance_gradient(Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  const Tensor deviation = widened(x) - spread(*inputs[1], x, attrs) - spread(*inputs[2], x, attrs);
  return narrowed(deviation * spread(*inputs[3] * (2 / count_of(x.shape(), attrs)), x, attrs), x);
}

Tensor variance_rule(const GradientCall& c, int k) {
  if (k != 0) return {};
  const Tensor* const inputs[] = {&c.inputs[0], &c.inputs[1], &c.inputs[2], &c.gradient};
  return apply_at_once(expand_variance_gradient, inputs, c.attrs);
}

Tensor expand_norm(Inputs inputs, const Attrs& attrs) {
  const Operands of(inputs, attrs);
  Tensor result = of.deviation(attrs) * spread(of.factor(attrs), of.x, attrs);
  if (attr<bool>(attrs, 4)) result = result + spread(widened(*inputs[of.count]), of.x, attrs);
  return narrowed(result, of.x);
}

Tensor expand_norm_gradient(Inputs inputs, const Attrs& attrs) {
  const Operands of(inputs, attrs);
  return narrowed(widened(*inputs.back()) * spread(of.factor(attrs), of.x, attrs), of.x);
}

/// The sum of the result's gradient.
Tensor expand_sum(Inputs inputs, const Attrs& attrs) {
  const Tensor& g = *inputs.back();
  return sum(widened(g), reduced_axes(g, attrs));
}

/// That of its products with the normalised values.
Tensor expand_sum_of_products(Inputs inputs, const Attrs& attrs) {
  const Operands of(inputs, attrs);
  const Tensor values = of.deviation(attrs) * spread(of.scale(attrs), of.x, attrs);
  return sum(widened(*inputs.back()) * values, reduced_axes(of.x, attrs));
}

Tensor norm_rule(const GradientCall& c, int k) {
  std::vector<const Tensor*> inputs;
  for (const Tensor& tensor : c.inputs) inputs.push_back(&tensor);
  const Operands of(inputs, c.attrs);
  inputs.resize(of.count);
  if (c.kept.empty()) c.kept.push_back(row_major(c.gradient));
  const Tensor gradient = c.kept[0];
  inputs.push_back(&gradient);
  if (k == 0) return apply_at_once(expand_norm_gradient, inputs, c.attrs);
  if (c.kept.size() == 1) {
    c.kept.push_back(apply_at_once(expand_sum, inputs, c.attrs));
    c.kept.push_back(apply_at_once(expand_sum_of_products, inputs, c.attrs));
  }
  const Tensor& sum = c.kept[1];
  const Tensor& of_products = c.kept[2];
  const auto last = static_cast<int>(of.count - 1);
  if (k > last) return sum;                                     // by the bias
  if (k == last && of.weight.is_defined()) return of_products;  // by the weight
  if (k == 2) return of_products * (of.factor(c.attrs) * of.scale(c.attrs) * -0.5);
  return -sum * of.factor(c.attrs);  // by the mean, or its shift
}

constexpr std::array<std::string_view, 1> axis_attrs = {"axis"};
constexpr std::array<std::string_view, 5> norm_attrs = {"axis", "eps", "has_shift", "has_weight",
                                                        "has_bias"};

constexpr auto batch = family({
    with_rule(composite("batch_mean", axis_attrs, expand_mean, "The mean of each feature."),
              mean_rule),
    without_gradient(composite("batch_shift", axis_attrs, expand_shift,
                               "What a feature's rounded mean lacks.", 2)),
    with_rule(composite("batch_variance", axis_attrs, expand_variance,
                        "The variance of each feature, by its mean and shift.", 3),
              variance_rule, 0b111),
    with_rule(composite("batch_norm", norm_attrs, expand_norm,
                        "(x - mean) / sqrt(variance + eps) * weight + bias of each feature.", -1),
              norm_rule, 0b11111),
});

void check_shapes(const Tensor& x, std::initializer_list<const Tensor*> numbers) {
  if (x.rank() < 2) {
    throw Error(ErrorKind::shape, {.where = "batch_norm",
                                   .what = "the input is " + describe(x),
                                   .expected = "[batch, features, ...]",
                                   .got = fmt::format("rank {}", x.rank()),
                                   .fix = {}});
  }
  const Shape features = {x.shape()[1]};
  for (const Tensor* of_features : numbers) {
    if (!of_features->is_defined() || of_features->shape() == features) continue;
    throw Error(
        ErrorKind::shape,
        {.where = "batch_norm",
         .what = fmt::format("{} with {} for its features", describe(x), describe(*of_features)),
         .expected = to_string(features),
         .got = to_string(of_features->shape()),
         .fix = "Weight, bias, mean and variance have a number for each feature, axis 1 of the "
                "input."});
  }
}

/// A batch as it lies in memory, and where its features are.
struct Batch {
  explicit Batch(const Tensor& x)
      : is_images(x.rank() == 4),
        axis(is_images ? 3 : 1),
        values(is_images ? row_major(channels_last(x)) : x) {}

  bool is_images;
  int64_t axis;
  Tensor values;
};

/// `shift` may be undefined.
Tensor normalised(const Batch& given, const Tensor& mean, const Tensor& variance,
                  const Tensor& shift, const BatchNorm& options) {
  std::vector<const Tensor*> inputs = {&given.values, &mean, &variance};
  for (const Tensor* more : {&shift, &options.weight, &options.bias}) {
    if (more->is_defined()) inputs.push_back(more);
  }
  const Tensor result = apply(batch["batch_norm"], inputs,
                              {given.axis, options.eps, shift.is_defined(),
                               options.weight.is_defined(), options.bias.is_defined()});
  return given.is_images ? channels_first(result) : result;
}

}  // namespace

BatchNormed batch_norm(const Tensor& x, const BatchNorm& options) {
  check_shapes(x, {&options.weight, &options.bias});
  const Batch given(x);
  const Tensor& values = given.values;
  const Attrs axis = {given.axis};
  const Tensor rounded = apply(batch["batch_mean"], {&values}, axis);
  const Tensor shift = apply(batch["batch_shift"], {&values, &rounded}, axis);
  const Tensor variance = apply(batch["batch_variance"], {&values, &rounded, &shift}, axis);
  return {.values = normalised(given, rounded, variance, shift, options),
          .mean = rounded + shift,
          .variance = variance};
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance,
                  const BatchNorm& options) {
  check_shapes(x, {&options.weight, &options.bias, &mean, &variance});
  return normalised(Batch(x), mean, variance, {}, options);
}

std::span<const Op> batch_norm_ops() {
  return batch.ops;
}

}  // namespace nitinol
