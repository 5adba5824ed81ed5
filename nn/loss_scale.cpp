#include "nn/loss_scale.h"

#include "autograd/gradient.h"
#include "core/autocast.h"
#include "core/error.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <cmath>

namespace nitinol::nn {
namespace {

/// A scale that overflows or vanishes would stay there.
constexpr double least_scale = 0x1p-126, greatest_scale = 0x1p127;

LossScaleOptions checked_scale(const LossScaleOptions& options) {
  constexpr const char* where = "LossScale";
  check_setting(where, "initial", options.initial, Interval::positive);
  check_setting(where, "backoff", options.backoff, Interval::share);
  check_setting(where, "backoff", options.backoff, Interval::positive);
  check_at_least(where, "interval", options.interval, 1);
  if (std::isfinite(options.growth) && options.growth >= 1) return options;
  throw Error(ErrorKind::value, {.where = where,
                                 .what = "the setting `growth`",
                                 .expected = "1 <= growth < infinity",
                                 .got = fmt::format("{}", options.growth),
                                 .fix = {}});
}

}  // namespace

LossScale::LossScale(const LossScaleOptions& options)
    : options_(checked_scale(options)),
      scale_(tensor(options.initial, f32)),
      finite_steps_(tensor(int64_t{0}, i64)) {}

Tensor LossScale::operator()(const Tensor& loss) const {
  return widened(loss) * scale_.get();
}

Tensor LossScale::unscale(const std::vector<Variable>& parameters) const {
  return unscale(parameters, [](const Tensor& is_finite) { return is_finite; });
}

Tensor LossScale::unscale(const std::vector<Variable>& parameters, const dist::Group& group,
                          std::source_location place) const {
  return unscale(parameters, [&](const Tensor& is_finite) {
    return dist::all_reduce(is_finite, dist::Reduce::min, group, place);
  });
}

Tensor LossScale::unscale(const std::vector<Variable>& parameters,
                          FunctionRef<Tensor(const Tensor&)> joined) const {
  const NoGradients scope;
  const AutocastScope as_usual(f32);
  const Tensor scale = scale_;
  const Tensor inverse = 1 / scale;
  Tensor is_finite;
  for (const Variable& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (!gradient.is_defined()) continue;
    const Tensor is_fine = all(isfinite(gradient));
    is_finite = is_finite.is_defined() ? logical_and(is_finite, is_fine) : is_fine;
    const Tensor unscaled = widened(gradient) * inverse;
    parameter.set_grad(cast(unscaled, gradient.dtype()));
  }
  if (!is_finite.is_defined()) {
    throw Error(ErrorKind::value, {.where = "LossScale::unscale",
                                   .what = "no parameter has a gradient",
                                   .expected = "a backward() before it",
                                   .got = "none",
                                   .fix = "Call scale(loss).backward() first."});
  }
  is_finite = joined(is_finite);
  const Tensor steps = finite_steps_ + 1;
  const Tensor grows = logical_and(is_finite, steps >= int64_t{options_.interval});
  const Tensor next =
      where(is_finite, where(grows, scale * options_.growth, scale), scale * options_.backoff);
  scale_.set(clamp(next, least_scale, greatest_scale));
  finite_steps_.set(where(logical_and(is_finite, logical_not(grows)), steps, 0));
  return is_finite;
}

}  // namespace nitinol::nn
