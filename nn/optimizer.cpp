#include "nn/optimizer.h"

#include "autograd/gradient.h"
#include "core/autocast.h"
#include "core/error.h"
#include "core/function_ref.h"
#include "core/place.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <utility>

namespace nitinol::nn {
namespace {

/// Numbers for parameters of any dtype: cast once for those of one dtype that follow each other.
class CastNumbers {
 public:
  explicit CastNumbers(std::vector<Tensor> numbers) : numbers_(std::move(numbers)) {}
  const std::vector<Tensor>& as(DType dtype) {
    if (dtype_ == dtype) return cast_;
    dtype_ = dtype;
    cast_.clear();
    for (const Tensor& number : numbers_) cast_.push_back(cast(number, dtype));
    return cast_;
  }

 private:
  std::vector<Tensor> numbers_, cast_;
  std::optional<DType> dtype_;
};

}  // namespace

std::shared_ptr<const Optimizer::Groups> Optimizer::groups() const {
  const std::lock_guard lock(mutex_);
  return groups_;
}

void Optimizer::replace(std::shared_ptr<const Groups> groups) {
  const std::lock_guard lock(mutex_);
  groups_.swap(groups);
}

void Optimizer::add_group(std::vector<Variable> parameters, Rule rule) {
  check_setting("optimizer", "rate", rule.rate, Interval::not_negative);
  check_setting(rule.where, "weight_decay", rule.weight_decay, Interval::not_negative);
  if (parameters.empty()) {
    throw Error(ErrorKind::value,
                {.where = "optimizer",
                 .what = "the list of parameters",
                 .expected = "at least one",
                 .got = "none",
                 .fix = "Check that the model's fields are Variables made by parameter()."});
  }
  const Device device = parameters[0].device();
  Group group = {.rate = Variable(tensor(rule.rate, f64, device)),
                 .steps = Variable(tensor(0.0, f64, device)),
                 .group_state = {},
                 .state = {},
                 .parameters = std::move(parameters),
                 .rule = std::make_shared<const Rule>(std::move(rule))};
  for (const Tensor& first : group.rule->group_state) group.group_state.emplace_back(first);
  for (const Variable& parameter : group.parameters) {
    if (!parameter.tracks_gradient()) {
      throw Error(ErrorKind::value, {.where = "optimizer",
                                     .what = "a Variable that tracks no gradient",
                                     .expected = "what parameter() made",
                                     .got = describe(parameter.spec()),
                                     .fix = "Pass nn::parameters(model)."});
    }
    std::vector<Variable>& state = group.state.emplace_back();
    for (const Tensor& first : group.rule->state(parameter)) state.emplace_back(first);
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

bool Optimizer::step(const Group& group) {
  const Rule& rule = *group.rule;
  std::vector<Item> items;
  bool is_any = false;
  for (std::size_t i = 0; i < group.parameters.size(); ++i) {
    const Variable& parameter = group.parameters[i];
    const Tensor gradient = parameter.grad();
    is_any = is_any || gradient.is_defined();
    if (gradient.is_defined() || rule.directions) {
      const Tensor value = parameter;
      items.push_back(
          {parameter, group.state[i], value, gradient.is_defined() ? gradient : zeros_like(value)});
    }
  }
  if (!is_any) return false;
  group.steps.set(group.steps + 1.0);
  const OnePlaceScope scope;
  const Step step = {group.rate, group.steps, group.group_state};
  CastNumbers shared(rule.shared(step));
  const bool is_apart = rule.weight_decay != 0 && rule.decay == Decay::apart;
  CastNumbers kept(is_apart ? std::vector{1 - step.rate * rule.weight_decay}
                            : std::vector<Tensor>());
  for (Item& item : items) {
    if (rule.is_maximizing) item.gradient = -item.gradient;
    if (is_apart) item.value = item.value * kept.as(item.value.dtype())[0];
    if (rule.weight_decay != 0 && rule.decay == Decay::in_gradient)
      item.gradient = item.gradient + item.value * rule.weight_decay;
  }
  if (rule.directions) rule.directions(step, items);
  for (const Item& item : items)
    item.parameter.set(rule.formula(item, shared.as(item.value.dtype())));
  return true;
}

void Optimizer::step(const Tensor& when) const {
  if (when.dtype() != boolean || when.rank() != 0) {
    throw Error(ErrorKind::value,
                {.where = "Optimizer::step",
                 .what = "whether the step is made",
                 .expected = "one boolean",
                 .got = describe(when),
                 .fix = "LossScale::unscale() gives one, and so does `loss < 10`."});
  }
  std::vector<std::pair<Variable, Tensor>> before;
  const auto note = [&](const Variable& variable) {
    before.emplace_back(variable, variable.get());
  };
  const std::shared_ptr<const Groups> present = groups();
  for (const Group& group : *present) {
    note(group.steps);
    for (const Variable& variable : group.group_state) note(variable);
    for (std::size_t i = 0; i < group.parameters.size(); ++i) {
      note(group.parameters[i]);
      for (const Variable& variable : group.state[i]) note(variable);
    }
  }
  step();
  const NoGradients scope;
  const OnePlaceScope place;
  for (const auto& [variable, value] : before) {
    const Tensor now = variable;
    if (now.handle() != value.handle()) variable.set(nitinol::where(when, now, value));
  }
}

void Optimizer::step() const {
  const NoGradients scope;
  const AutocastScope as_usual(f32);
  bool is_any = false;
  const std::shared_ptr<const Groups> present = groups();
  for (const Group& group : *present) is_any = step(group) || is_any;
  if (is_any) return;
  throw Error(ErrorKind::value, {.where = "Optimizer::step",
                                 .what = "no parameter has a gradient",
                                 .expected = "a backward() since zero_grad()",
                                 .got = "none",
                                 .fix = "Call loss.backward() first, and check that the optimizer "
                                        "was given the model's own parameters."});
}

// ---- clipping

namespace {

/// Infinity is allowed: it only measures.
void check_largest(const char* where, double largest) {
  if (largest != std::numeric_limits<double>::infinity())
    check_setting(where, "largest", largest, Interval::not_negative);
}

}  // namespace

namespace {

/// `joined`: the sum of squares of all ranks, of that of this one.
Tensor clip_norm(const std::vector<Variable>& parameters, double largest,
                 FunctionRef<Tensor(const Tensor&)> joined) {
  check_largest("clip_gradient_norm", largest);
  const NoGradients scope;
  const AutocastScope as_usual(f32);
  Tensor total;
  DType dtype = f32;
  for (const Variable& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (!gradient.is_defined()) continue;
    dtype = promote(dtype, gradient.dtype());
    const Tensor part = sum(square(cast(gradient, f64)));
    total = total.is_defined() ? total + part : part;
  }
  const Device device = parameters.empty() ? default_device() : parameters[0].device();
  const Tensor norm = sqrt(joined(total.is_defined() ? total : zeros({}, f64, device)));
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

}  // namespace

Tensor clip_gradient_norm(const std::vector<Variable>& parameters, double largest) {
  return clip_norm(parameters, largest, [](const Tensor& total) { return total; });
}

Tensor clip_gradient_norm(const std::vector<Variable>& parameters, double largest,
                          const dist::Group& group, std::source_location place) {
  return clip_norm(parameters, largest, [&](const Tensor& total) {
    return dist::all_reduce(total, dist::Reduce::sum, group, place);
  });
}

void clip_gradient_value(const std::vector<Variable>& parameters, double largest) {
  check_largest("clip_gradient_value", largest);
  const NoGradients scope;
  for (const Variable& parameter : parameters) {
    const Tensor gradient = parameter.grad();
    if (gradient.is_defined()) parameter.set_grad(clamp(gradient, -largest, largest));
  }
}

}  // namespace nitinol::nn
