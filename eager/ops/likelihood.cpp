// The gradient of log_likelihood() is what the labels want less softmax(scores). As a rule of one
// op it is one step of an eager backward pass, too, and not a dozen, each as large as the scores.
#include "eager/ops/likelihood.h"

#include "eager/apply.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/reduce.h"
#include "eager/ops/statistics.h"
#include "eager/ops/view.h"

#include <array>
#include <string_view>

namespace nitinol {
namespace {

constexpr std::array<std::string_view, 1> smoothing_attrs = {"smoothing"};

/// Where the last axis is the row's label.
Tensor is_label(const Tensor& scores, const Tensor& labels) {
  return unsqueeze(labels, -1) == arange(scores.shape().back(), {}, scores.device());
}

Tensor expand_likelihood(Inputs inputs, const Attrs& attrs) {
  const Tensor& scores = *inputs[0];
  static_cast<void>(normalize_axis("log_likelihood", -1, scores.rank()));
  const double smoothing = attr<double>(attrs, 0);
  const Tensor logarithms = log_softmax(scores), is_wanted = is_label(scores, *inputs[1]);
  if (smoothing == 0) return sum(where(is_wanted, logarithms, 0), {-1});
  return sum(smoothed(cast(is_wanted, logarithms.dtype()), smoothing) * logarithms, {-1});
}

/// Inputs: the result's gradient, scores, labels.
Tensor expand_likelihood_gradient(Inputs inputs, const Attrs& attrs) {
  const Tensor& scores = *inputs[1];
  static_cast<void>(normalize_axis("log_likelihood_gradient", -1, scores.rank()));
  const Tensor likely = softmax(scores);
  const Tensor wanted = cast(is_label(scores, *inputs[2]), likely.dtype());
  return unsqueeze(*inputs[0], -1) * (smoothed(wanted, attr<double>(attrs, 0)) - likely);
}

Tensor likelihood_rule(const GradientCall& c, int k);

constexpr auto likelihoods = family({
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
  return apply(likelihoods["log_likelihood_gradient"], {&c.gradient, &c.inputs[0], &c.inputs[1]},
               c.attrs);
}

}  // namespace

Tensor smoothed(const Tensor& wanted, double smoothing) {
  if (smoothing == 0) return wanted;
  const auto classes = static_cast<double>(wanted.shape().back());
  return wanted * (1 - smoothing) + smoothing / classes;
}

Tensor log_likelihood(const Tensor& scores, const Tensor& labels, double smoothing) {
  return apply(likelihoods["log_likelihood"], {&scores, &labels}, {smoothing});
}

std::span<const Op> likelihood_ops() {
  return likelihoods.ops;
}

}  // namespace nitinol
