// L-BFGS: its step, and steps whose lengths are searched.
#include "autograd/gradient.h"
#include "core/autocast.h"
#include "core/error.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"
#include "nn/checks.h"
#include "nn/line_search.h"
#include "nn/optimizers.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace nitinol::nn {
namespace {

/// The next move of all parameters, by the two loops of Nocedal (1980). `state`: gradient and move
/// of the step before, the first guess of the inverse second derivative, and of past steps, the
/// oldest first, the moves s, the changes y of the gradient, and 1 / (s y): 0 where there was none.
Tensor lbfgs_move(const Tensor& rate, const Tensor& count, const std::vector<Variable>& state,
                  const Tensor& gradient) {
  const Tensor y = gradient - state[0], s = state[1];
  const Tensor curvature = sum(y * s);
  const Tensor is_kept = curvature > 1e-10;
  const auto assigned = [](const Variable& variable, const Tensor& value) {
    variable.set(value);
    return value;
  };
  const auto pushed = [&](const Variable& past, const Tensor& newest) {
    const Tensor rest = slice(past, 0, {1, past.shape()[0]});
    return assigned(past, where(is_kept, concat({rest, unsqueeze(newest, 0)}), past));
  };
  const Tensor guess = assigned(state[2], where(is_kept, curvature / sum(y * y), state[2]));
  const Tensor moves = pushed(state[3], s), changes = pushed(state[4], y);
  const Tensor weights = pushed(state[5], 1 / curvature);
  const int64_t history = weights.shape()[0];
  std::vector<Tensor> along(static_cast<std::size_t>(history));
  Tensor direction = -gradient;
  for (int64_t i = history - 1; i >= 0; --i) {
    Tensor& a = along[static_cast<std::size_t>(i)];
    a = weights[i] * sum(moves[i] * direction);
    direction = direction - changes[i] * a;
  }
  direction = direction * guess;
  for (int64_t i = 0; i < history; ++i) {
    const Tensor b = weights[i] * sum(changes[i] * direction);
    direction = direction + moves[i] * (along[static_cast<std::size_t>(i)] - b);
  }
  // Nothing is known yet at the first step, which is kept short.
  const Tensor first = minimum(1 / sum(abs(gradient)), 1.0);
  const Tensor size = where(count > 1.0, 1.0, first) * cast(rate, gradient.dtype());
  state[0].set(gradient);
  return assigned(state[1], direction * size);
}

/// A line of all elements, in the shapes and dtypes of parameters.
std::vector<Tensor> parts_of(const Tensor& line, const std::vector<Variable>& parameters) {
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const Variable& parameter : parameters) {
    const int64_t end = start + parameter.size();
    parts.push_back(
        cast(reshape(slice(line, 0, {start, end}), parameter.shape()), parameter.dtype()));
    start = end;
  }
  return parts;
}

}  // namespace

Lbfgs::Lbfgs(std::vector<Variable> parameters, const LbfgsOptions& options) {
  add(std::move(parameters), options);
}

void Lbfgs::add(std::vector<Variable> parameters, const LbfgsOptions& options) {
  check_at_least("Lbfgs", "history", options.history, 1);
  const Device device = parameters.empty() ? Device() : parameters[0].device();
  DType dtype = f32;
  int64_t size = 0;
  for (const Variable& each : parameters) {
    dtype = promote(dtype, each.dtype());
    size += each.size();
  }
  const auto none = [&](const Shape& shape) { return zeros(shape, dtype, device); };
  const Tensor none_of_all = none({options.history, size});
  add_group(std::move(parameters),
            {.where = "Lbfgs",
             .rate = options.rate,
             .is_maximizing = options.is_maximizing,
             .group_state = {none({size}), none({size}), full({}, 1.0, dtype, device), none_of_all,
                             none_of_all, none({options.history})},
             .state = [](const Variable&) { return std::vector<Tensor>(); },
             .shared = [](const Step&) { return std::vector<Tensor>(); },
             .formula = [](const Item& item,
                           const std::vector<Tensor>&) { return item.value - item.gradient; },
             .directions =
                 [=](const Step& step, std::vector<Item>& items) {
                   std::vector<Tensor> flat;
                   for (const Item& item : items)
                     flat.push_back(cast(flatten(item.gradient), dtype));
                   const Tensor move = lbfgs_move(step.rate, step.count, step.state, concat(flat));
                   std::vector<Variable> moved;
                   for (const Item& item : items) moved.push_back(item.parameter);
                   const std::vector<Tensor> parts = parts_of(move, moved);
                   for (std::size_t i = 0; i < items.size(); ++i) items[i].gradient = -parts[i];
                 }});
}

namespace {

/// Parameters, and the line along which a step has moved them.
class Descent {
 public:
  Descent(std::vector<Variable> parameters, FunctionRef<Tensor()> loss, bool is_maximizing)
      : parameters_(std::move(parameters)), loss_(loss), sign_(is_maximizing ? -1 : 1) {}

  /// The line from `before` to where the parameters are, and on.
  void follow(std::vector<Tensor> before, std::vector<Tensor> moves) {
    before_ = std::move(before), moves_ = std::move(moves);
  }
  [[nodiscard]] std::vector<Tensor> values() const {
    return {parameters_.begin(), parameters_.end()};
  }

  /// Moves the parameters to `step` times the line, and computes loss and gradients there. If that
  /// throws, the parameters are at the line's beginning.
  LinePoint at(double step) {
    try {
      return try_at(step);
    } catch (...) {
      for (std::size_t i = 0; i < before_.size(); ++i) parameters_[i].set(before_[i]);
      throw;
    }
  }
  [[nodiscard]] const LinePoint& last() const { return last_; }
  [[nodiscard]] double loss() const { return sign_ * last_.value; }
  /// The largest element of a gradient.
  [[nodiscard]] double steepest() const { return steepest_; }
  [[nodiscard]] int64_t evaluations() const { return evaluations_; }

  /// How the loss changes from the last gradients on along a line.
  [[nodiscard]] double slope_along(const std::vector<Tensor>& moves) const {
    const NoGradients scope;
    return sign_ * change_along(moves).item<double>();
  }

 private:
  /// The same of what is minimized or maximized, as a tensor; 0 for no moves.
  [[nodiscard]] Tensor change_along(const std::vector<Tensor>& moves) const {
    Tensor slope = zeros({}, f64, parameters_[0].device());
    for (std::size_t i = 0; i < moves.size(); ++i) {
      const Tensor gradient = parameters_[i].grad();
      if (gradient.is_defined()) slope = slope + sum(cast(gradient, f64) * cast(moves[i], f64));
    }
    return slope;
  }

  LinePoint try_at(double step) {
    {
      const NoGradients scope;
      for (std::size_t i = 0; i < moves_.size(); ++i)
        parameters_[i].set(before_[i] + moves_[i] * step);
    }
    for (const Variable& parameter : parameters_) parameter.clear_grad();
    const Tensor loss = loss_();
    ++evaluations_;
    if (!loss.is_defined() || loss.size() != 1) {
      throw Error(ErrorKind::shape,
                  {.where = "Lbfgs::minimize",
                   .what = "the loss",
                   .expected = "one number",
                   .got = loss.is_defined() ? describe(loss) : "an undefined tensor",
                   .fix = "Return the tensor whose backward() was called."});
    }
    const NoGradients scope;
    Tensor steepest = zeros({}, f64, parameters_[0].device());
    for (const Variable& parameter : parameters_) {
      const Tensor gradient = parameter.grad();
      if (gradient.is_defined() && gradient.size() > 0)
        steepest = maximum(steepest, max(abs(cast(gradient, f64))));
    }
    const Tensor value = reshape(cast(stop_gradient(loss), f64), {});
    const std::vector<double> read =
        stack({value, change_along(moves_), steepest}).to_vector<double>();
    steepest_ = read[2];
    return last_ = {.step = step, .value = sign_ * read[0], .slope = sign_ * read[1]};
  }

  std::vector<Variable> parameters_;
  FunctionRef<Tensor()> loss_;
  double sign_;
  std::vector<Tensor> before_, moves_;
  LinePoint last_;
  double steepest_ = 0;
  int64_t evaluations_ = 0;
};

}  // namespace

Minimum Lbfgs::minimize(FunctionRef<Tensor()> loss, const MinimizeOptions& options) const {
  constexpr const char* where = "Lbfgs::minimize";
  check_at_least(where, "iterations", options.iterations, 1);
  check_at_least(where, "evaluations", options.evaluations, 1);
  check_setting(where, "gradient_tolerance", options.gradient_tolerance, Interval::not_negative);
  check_setting(where, "change_tolerance", options.change_tolerance, Interval::not_negative);
  const std::shared_ptr<const Groups> present = groups();
  std::vector<Variable> parameters;
  const bool is_maximizing = present->front().rule->is_maximizing;
  for (const Group& group : *present) {
    parameters.insert(parameters.end(), group.parameters.begin(), group.parameters.end());
    if (group.rule->is_maximizing == is_maximizing) continue;
    throw Error(ErrorKind::value, {.where = where,
                                   .what = "groups of which some maximize and some minimize",
                                   .expected = "the same of all",
                                   .got = "both",
                                   .fix = "A line search needs one direction."});
  }
  Descent descent(std::move(parameters), loss, is_maximizing);
  descent.at(0);
  if (!std::isfinite(descent.loss())) {
    throw Error(ErrorKind::value, {.where = where,
                                   .what = "the loss at the start",
                                   .expected = "a finite number",
                                   .got = fmt::format("{}", descent.loss()),
                                   .fix = "Start from other parameters."});
  }
  Minimum found;
  while (found.iterations < options.iterations) {
    found.is_converged = descent.steepest() <= options.gradient_tolerance;
    if (found.is_converged) break;
    std::vector<Tensor> before = descent.values(), moves;
    step();
    for (const Group& group : *present) {
      for (Tensor& move : parts_of(group.group_state[1], group.parameters))
        moves.push_back(std::move(move));
    }
    const double slope = descent.slope_along(moves);
    const LinePoint start = {.step = 0, .value = descent.last().value, .slope = slope};
    descent.follow(std::move(before), moves);
    LinePoint best = start;
    if (slope < 0)
      best =
          search_line(start, 1, options.evaluations, [&](double step) { return descent.at(step); });
    if (best.step != descent.last().step || !(slope < 0)) descent.at(best.step);
    const NoGradients scope;
    double largest = 0;
    for (const Group& group : *present) {
      const Tensor move = group.group_state[1] * best.step;
      group.group_state[1].set(move);
      largest = std::max(largest, max(abs(move)).item<double>());
    }
    if (best.step == 0) break;
    ++found.iterations;
    found.is_converged = std::abs(best.value - start.value) <= options.change_tolerance ||
                         largest <= options.change_tolerance;
    if (found.is_converged) break;
  }
  found.loss = descent.loss();
  found.evaluations = descent.evaluations();
  return found;
}

}  // namespace nitinol::nn
