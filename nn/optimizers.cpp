#include "nn/optimizers.h"

#include "autograd/gradient.h"
#include "core/callable.h"
#include "core/error.h"
#include "core/place.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <utility>

namespace nitinol::nn {
namespace {

/// A number for parameters of any dtype: cast once for those of one dtype that follow each other.
class CastNumber {
 public:
  explicit CastNumber(Tensor number) : number_(std::move(number)) {}
  const Tensor& as(DType dtype) {
    if (!cast_.is_defined() || cast_.dtype() != dtype) cast_ = cast(number_, dtype);
    return cast_;
  }

 private:
  Tensor number_, cast_;
};

}  // namespace

// ---- what all share

std::shared_ptr<const Optimizer::Groups> Optimizer::groups() const {
  const std::lock_guard lock(mutex_);
  return groups_;
}

void Optimizer::replace(std::shared_ptr<const Groups> groups) {
  const std::lock_guard lock(mutex_);
  groups_.swap(groups);
}

void Optimizer::add_group(std::vector<Variable> parameters, double rate, int states, Rule rule) {
  check_setting("optimizer", "rate", rate, Interval::not_negative);
  if (parameters.empty()) {
    throw Error(ErrorKind::value,
                {.where = "optimizer",
                 .what = "the list of parameters",
                 .expected = "at least one",
                 .got = "none",
                 .fix = "Check that the model's fields are Variables made by parameter()."});
  }
  const Device device = parameters[0].device();
  Group group = {.rate = Variable(tensor(rate, f64, device)),
                 .steps = Variable(tensor(0.0, f64, device)),
                 .state = {},
                 .parameters = std::move(parameters),
                 .rule = std::move(rule)};
  for (const Variable& parameter : group.parameters) {
    if (!parameter.tracks_gradient()) {
      throw Error(ErrorKind::value, {.where = "optimizer",
                                     .what = "a Variable that tracks no gradient",
                                     .expected = "what parameter() made",
                                     .got = describe(parameter.spec()),
                                     .fix = "Pass nn::parameters(model)."});
    }
    std::vector<Variable>& state = group.state.emplace_back();
    for (int i = 0; i < states; ++i) {
      state.emplace_back(zeros(parameter.shape(), parameter.dtype(), parameter.device()));
    }
  }
  const std::lock_guard lock(mutex_);
  auto more = std::make_shared<Groups>(*groups_);
  more->push_back(std::move(group));
  groups_ = std::move(more);
}

void Optimizer::zero_grad() const {
  const std::shared_ptr<const Groups> present = groups();
  for (const Group& group : *present) {
    for (const Variable& parameter : group.parameters) parameter.clear_grad();
  }
}

Variable Optimizer::rate(std::size_t group) const {
  const std::shared_ptr<const Groups> present = groups();
  if (group < present->size()) return (*present)[group].rate;
  throw Error(ErrorKind::value, {.where = "Optimizer::rate",
                                 .what = "the number of a group",
                                 .expected = fmt::format("less than {}", present->size()),
                                 .got = fmt::format("{}", group),
                                 .fix = "The constructor makes group 0, add() the others."});
}

void Optimizer::set_rate(double rate) const {
  check_setting("Optimizer::set_rate", "rate", rate, Interval::not_negative);
  const std::shared_ptr<const Groups> present = groups();
  for (const Group& group : *present) group.rate.set(tensor(rate, f64, group.rate.device()));
}

void Optimizer::step() const {
  const NoGradients scope;
  bool is_any = false;
  const std::shared_ptr<const Groups> present = groups();
  for (const Group& group : *present) {
    std::vector<Item> items;
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      const Variable& parameter = group.parameters[i];
      const Tensor gradient = parameter.grad();
      if (gradient.is_defined()) items.push_back({parameter, group.state[i], parameter, gradient});
    }
    if (items.empty()) continue;
    is_any = true;
    group.steps.set(group.steps + 1.0);
    group.rule(items, group.rate, group.steps);
  }
  if (is_any) return;
  throw Error(ErrorKind::value, {.where = "Optimizer::step",
                                 .what = "no parameter has a gradient",
                                 .expected = "a backward() since zero_grad()",
                                 .got = "none",
                                 .fix = "Call loss.backward() first, and check that the optimizer "
                                        "was given the model's own parameters."});
}

// ---- SGD

Sgd::Sgd(std::vector<Variable> parameters, const SgdOptions& options) {
  add(std::move(parameters), options);
}

void Sgd::add(std::vector<Variable> parameters, const SgdOptions& options) {
  check_setting("Sgd", "momentum", options.momentum, Interval::not_negative);
  check_setting("Sgd", "weight_decay", options.weight_decay, Interval::not_negative);
  if (options.is_nesterov)
    check_setting("Sgd with is_nesterov", "momentum", options.momentum, Interval::positive);
  const auto rule = [o = options](const std::vector<Item>& items, const Tensor& rate,
                                  const Tensor&) {
    const OnePlaceScope scope;
    CastNumber cast_rate(rate);
    for (const Item& item : items) {
      Tensor g = item.gradient;
      if (o.weight_decay != 0) g = g + item.value * o.weight_decay;
      if (o.momentum != 0) {
        const Tensor velocity = item.state[0] * o.momentum + g;
        item.state[0].set(velocity);
        g = o.is_nesterov ? g + velocity * o.momentum : velocity;
      }
      item.parameter.set(item.value - g * cast_rate.as(g.dtype()));
    }
  };
  add_group(std::move(parameters), options.rate, options.momentum == 0 ? 0 : 1, rule);
}

// ---- Adam

Adam::Adam(std::vector<Variable> parameters, const AdamOptions& options)
    : Adam(std::move(parameters), options, false) {}

Adam::Adam(std::vector<Variable> parameters, const AdamOptions& options, bool is_decoupled)
    : is_decoupled_(is_decoupled) {
  add(std::move(parameters), options);
}

AdamW::AdamW(std::vector<Variable> parameters, const AdamOptions& options)
    : Adam(std::move(parameters), options, true) {}

void Adam::add(std::vector<Variable> parameters, const AdamOptions& options) {
  check_setting("Adam", "beta1", options.beta1, Interval::below_one);
  check_setting("Adam", "beta2", options.beta2, Interval::below_one);
  check_setting("Adam", "eps", options.eps, Interval::not_negative);
  check_setting("Adam", "weight_decay", options.weight_decay, Interval::not_negative);
  const auto rule = [o = options, is_decoupled = is_decoupled_](
                        const std::vector<Item>& items, const Tensor& rate, const Tensor& steps) {
    const OnePlaceScope scope;
    // Corrections for the averages' start at zero, in float64, once for all parameters.
    CastNumber step(rate / (1 - pow(o.beta1, steps)));
    CastNumber bias(sqrt(1 - pow(o.beta2, steps)));
    CastNumber kept(is_decoupled && o.weight_decay != 0 ? 1 - rate * o.weight_decay : Tensor());
    for (const Item& item : items) {
      const DType dtype = item.value.dtype();
      Tensor value = item.value;
      Tensor g = item.gradient;
      if (o.weight_decay != 0 && is_decoupled) value = value * kept.as(dtype);
      if (o.weight_decay != 0 && !is_decoupled) g = g + value * o.weight_decay;
      const Tensor first = item.state[0] * o.beta1 + g * (1 - o.beta1);
      const Tensor second = item.state[1] * o.beta2 + square(g) * (1 - o.beta2);
      item.state[0].set(first);
      item.state[1].set(second);
      const Tensor denominator = sqrt(second) / bias.as(dtype) + o.eps;
      item.parameter.set(value - first / denominator * step.as(dtype));
    }
  };
  add_group(std::move(parameters), options.rate, 2, rule);
}

// ---- RMSprop

RmsProp::RmsProp(std::vector<Variable> parameters, const RmsPropOptions& options) {
  add(std::move(parameters), options);
}

void RmsProp::add(std::vector<Variable> parameters, const RmsPropOptions& options) {
  check_setting("RmsProp", "decay", options.decay, Interval::share);
  check_setting("RmsProp", "eps", options.eps, Interval::not_negative);
  check_setting("RmsProp", "momentum", options.momentum, Interval::not_negative);
  check_setting("RmsProp", "weight_decay", options.weight_decay, Interval::not_negative);
  const auto rule = [o = options](const std::vector<Item>& items, const Tensor& rate,
                                  const Tensor&) {
    const OnePlaceScope scope;
    CastNumber cast_rate(rate);
    for (const Item& item : items) {
      Tensor g = item.gradient;
      if (o.weight_decay != 0) g = g + item.value * o.weight_decay;
      const Tensor average = item.state[0] * o.decay + square(g) * (1 - o.decay);
      item.state[0].set(average);
      Tensor move = g / (sqrt(average) + o.eps);
      if (o.momentum != 0) {
        move = item.state[1] * o.momentum + move;
        item.state[1].set(move);
      }
      item.parameter.set(item.value - move * cast_rate.as(g.dtype()));
    }
  };
  add_group(std::move(parameters), options.rate, options.momentum == 0 ? 1 : 2, rule);
}

// ---- clipping

namespace {

/// Infinity is allowed: it only measures.
void check_largest(const char* where, double largest) {
  if (largest != std::numeric_limits<double>::infinity())
    check_setting(where, "largest", largest, Interval::not_negative);
}

}  // namespace

Tensor clip_gradient_norm(const std::vector<Variable>& parameters, double largest) {
  check_largest("clip_gradient_norm", largest);
  const NoGradients scope;
  Tensor total;
  DType dtype = f32;
  for (const Variable& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (!gradient.is_defined()) continue;
    dtype = promote(dtype, gradient.dtype());
    const Tensor part = sum(square(cast(gradient, f64)));
    total = total.is_defined() ? total + part : part;
  }
  if (!total.is_defined())
    return zeros({}, f32, parameters.empty() ? default_device() : parameters[0].device());
  const Tensor norm = sqrt(total);
  const Tensor scale = minimum(largest / (norm + 1e-6), 1.0);
  for (const Variable& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (!gradient.is_defined()) continue;
    // The scale of float16 gradients may be too small for a float16.
    const DType wide = promote(gradient.dtype(), f32);
    const Tensor scaled = cast(gradient, wide) * cast(scale, wide);
    parameter.set_grad(cast(scaled, gradient.dtype()));
  }
  return cast(norm, dtype);
}

void clip_gradient_value(const std::vector<Variable>& parameters, double largest) {
  check_largest("clip_gradient_value", largest);
  const NoGradients scope;
  for (const Variable& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (gradient.is_defined()) parameter.set_grad(clamp(gradient, -largest, largest));
  }
}

// ---- schedules

namespace {

int64_t checked_step(const char* where, int64_t step) {
  check_at_least(where, "step", step, 0);
  return step;
}

}  // namespace

Schedule step_decay(double rate, int64_t every, double factor) {
  check_setting("step_decay", "rate", rate, Interval::not_negative);
  check_at_least("step_decay", "every", every, 1);
  check_setting("step_decay", "factor", factor, Interval::not_negative);
  return [=](int64_t step) {
    const int64_t decays = checked_step("step_decay", step) / every;
    return rate * std::pow(factor, static_cast<double>(decays));
  };
}

Schedule cosine_decay(double rate, int64_t steps, double last) {
  check_setting("cosine_decay", "rate", rate, Interval::not_negative);
  check_at_least("cosine_decay", "steps", steps, 1);
  check_setting("cosine_decay", "last", last, Interval::not_negative);
  return [=](int64_t step) {
    if (checked_step("cosine_decay", step) >= steps) return last;
    const double phase = std::numbers::pi * static_cast<double>(step) / static_cast<double>(steps);
    return last + (rate - last) * 0.5 * (1 + std::cos(phase));
  };
}

Schedule warm_up(int64_t steps, Schedule then) {
  check_at_least("warm_up", "steps", steps, 0);
  check_callable("warm_up", then);
  return [steps, then = std::move(then)](int64_t step) {
    if (checked_step("warm_up", step) >= steps) return then(step - steps);
    return then(0) * static_cast<double>(step + 1) / static_cast<double>(steps);
  };
}

}  // namespace nitinol::nn
