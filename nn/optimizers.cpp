// Rules of optimizers: of what is computed once for all parameters of a group (numbers, in
// float64), and of one parameter. Signs, weight decay and casts are optimizer.cpp's.
#include "nn/optimizers.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>
#include <limits>
#include <utility>

namespace nitinol::nn {
namespace {

struct Setting {
  const char* name;
  double value;
  Interval interval;
};

void check(const char* where, std::initializer_list<Setting> settings) {
  for (const Setting& each : settings) check_setting(where, each.name, each.value, each.interval);
}

template <class Options>
void check_averages(const char* where, const Options& o) {
  check(where, {{"beta1", o.beta1, Interval::below_one},
                {"beta2", o.beta2, Interval::below_one},
                {"eps", o.eps, Interval::not_negative}});
}

/// State of the parameter's shape: `count` Variables of `value`.
auto alike(int count, double value = 0) {
  return [=](const Variable& parameter) {
    const Tensor first = full(parameter.shape(), value, parameter.dtype(), parameter.device());
    return std::vector<Tensor>(static_cast<std::size_t>(count), first);
  };
}

/// What rules that take the rate alone share.
constexpr auto rate_alone = [](const auto& step) { return std::vector<Tensor>{step.rate}; };

Tensor assigned(const Variable& state, const Tensor& value) {
  state.set(value);
  return value;
}

/// The next value of an average that forgets.
Tensor averaged(const Variable& average, const Tensor& value, double decay) {
  return assigned(average, average * decay + value * (1 - decay));
}

/// 1 - beta^n: what is left of an average's start at zero.
Tensor correction(double beta, const Tensor& count) {
  return 1 - pow(beta, count);
}

/// Squares of float16 may be infinite: these are of a float32 at least.
Tensor squares(const Tensor& x) {
  return square(cast(x, promote(x.dtype(), f32)));
}

/// The distance from 1 to the next number.
double epsilon(DType dtype) {
  if (dtype == f64) return std::numeric_limits<double>::epsilon();
  if (dtype == f32) return std::numeric_limits<float>::epsilon();
  return dtype == f16 ? 0x1p-10 : 0x1p-7;
}

}  // namespace

// ---- SGD

Sgd::Sgd(std::vector<Variable> parameters, const SgdOptions& options) {
  add(std::move(parameters), options);
}

void Sgd::add(std::vector<Variable> parameters, const SgdOptions& options) {
  check("Sgd", {{"momentum", options.momentum, Interval::not_negative},
                {"dampening", options.dampening, Interval::share}});
  if (options.is_nesterov) {
    check_setting("Sgd with is_nesterov", "momentum", options.momentum, Interval::positive);
    if (options.dampening != 0) {
      throw Error(ErrorKind::value, {.where = "Sgd with is_nesterov",
                                     .what = "the setting `dampening`",
                                     .expected = "0",
                                     .got = fmt::format("{}", options.dampening),
                                     .fix = "Leave it out: the method is defined without."});
    }
  }
  const bool is_damped = options.momentum != 0 && options.dampening != 0;
  add_group(
      std::move(parameters),
      {.where = "Sgd",
       .rate = options.rate,
       .weight_decay = options.weight_decay,
       .is_maximizing = options.is_maximizing,
       .state = alike(options.momentum == 0 ? 0 : 1),
       .shared =
           [=](const Step& step) {
             if (!is_damped) return std::vector{step.rate};
             // The first gradient is the momentum.
             return std::vector{step.rate, 1 - cast(step.count > 1.0, f64) * options.dampening};
           },
       .formula =
           [=](const Item& item, const std::vector<Tensor>& shared) {
             Tensor g = item.gradient;
             if (options.momentum != 0) {
               const Tensor joined = is_damped ? g * shared[1] : g;
               const Tensor velocity =
                   assigned(item.state[0], item.state[0] * options.momentum + joined);
               g = options.is_nesterov ? g + velocity * options.momentum : velocity;
             }
             return item.value - g * shared[0];
           }});
}

// ---- Adam and its relatives

Adam::Adam(std::vector<Variable> parameters, const AdamOptions& options)
    : Adam(std::move(parameters), options, false) {}

Adam::Adam(std::vector<Variable> parameters, const AdamOptions& options, bool is_decoupled)
    : is_decoupled_(is_decoupled) {
  add(std::move(parameters), options);
}

namespace {

AdamOptions adam_options(const AdamWOptions& options) {
  return {.rate = options.rate,
          .beta1 = options.beta1,
          .beta2 = options.beta2,
          .eps = options.eps,
          .weight_decay = options.weight_decay,
          .is_amsgrad = options.is_amsgrad,
          .is_maximizing = options.is_maximizing};
}

}  // namespace

AdamW::AdamW(std::vector<Variable> parameters, const AdamWOptions& options)
    : Adam(std::move(parameters), adam_options(options), true) {}

void AdamW::add(std::vector<Variable> parameters, const AdamWOptions& options) {
  Adam::add(std::move(parameters), adam_options(options));
}

void Adam::add(std::vector<Variable> parameters, const AdamOptions& options) {
  check_averages("Adam", options);
  add_group(std::move(parameters),
            {.where = "Adam",
             .rate = options.rate,
             .weight_decay = options.weight_decay,
             .decay = is_decoupled_ ? Decay::apart : Decay::in_gradient,
             .is_maximizing = options.is_maximizing,
             .state = alike(options.is_amsgrad ? 3 : 2),
             .shared =
                 [=](const Step& step) {
                   return std::vector{step.rate / correction(options.beta1, step.count),
                                      sqrt(correction(options.beta2, step.count))};
                 },
             .formula =
                 [=](const Item& item, const std::vector<Tensor>& shared) {
                   const Tensor first = averaged(item.state[0], item.gradient, options.beta1);
                   Tensor second = averaged(item.state[1], square(item.gradient), options.beta2);
                   if (options.is_amsgrad)
                     second = assigned(item.state[2], maximum(item.state[2], second));
                   const Tensor denominator = sqrt(second) / shared[1] + options.eps;
                   return item.value - first / denominator * shared[0];
                 }});
}

Adamax::Adamax(std::vector<Variable> parameters, const AdamaxOptions& options) {
  add(std::move(parameters), options);
}

void Adamax::add(std::vector<Variable> parameters, const AdamaxOptions& options) {
  check_averages("Adamax", options);
  add_group(std::move(parameters),
            {.where = "Adamax",
             .rate = options.rate,
             .weight_decay = options.weight_decay,
             .is_maximizing = options.is_maximizing,
             .state = alike(2),
             .shared =
                 [=](const Step& step) {
                   return std::vector{step.rate / correction(options.beta1, step.count)};
                 },
             .formula =
                 [=](const Item& item, const std::vector<Tensor>& shared) {
                   const Tensor first = averaged(item.state[0], item.gradient, options.beta1);
                   const Tensor largest = assigned(
                       item.state[1],
                       maximum(item.state[1] * options.beta2, abs(item.gradient) + options.eps));
                   return item.value - first / largest * shared[0];
                 }});
}

NAdam::NAdam(std::vector<Variable> parameters, const NAdamOptions& options) {
  add(std::move(parameters), options);
}

void NAdam::add(std::vector<Variable> parameters, const NAdamOptions& options) {
  check_averages("NAdam", options);
  check_setting("NAdam", "momentum_decay", options.momentum_decay, Interval::not_negative);
  const Device device = parameters.empty() ? Device() : parameters[0].device();
  const auto momentum = [=](const Tensor& count) {
    return options.beta1 * (1 - 0.5 * pow(0.96, count * options.momentum_decay));
  };
  add_group(std::move(parameters),
            {.where = "NAdam",
             .rate = options.rate,
             .weight_decay = options.weight_decay,
             .decay = options.is_decoupled ? Decay::apart : Decay::in_gradient,
             .is_maximizing = options.is_maximizing,
             .group_state = {tensor(1.0, f64, device)},  // the product of all momenta
             .state = alike(2),
             .shared =
                 [=](const Step& step) {
                   const Tensor now = momentum(step.count), next = momentum(step.count + 1.0);
                   const Tensor product = assigned(step.state[0], step.state[0] * now);
                   return std::vector{step.rate * (1 - now) / (1 - product),
                                      step.rate * next / (1 - product * next),
                                      sqrt(correction(options.beta2, step.count))};
                 },
             .formula =
                 [=](const Item& item, const std::vector<Tensor>& shared) {
                   const Tensor g = item.gradient;
                   const Tensor first = averaged(item.state[0], g, options.beta1);
                   const Tensor second = averaged(item.state[1], square(g), options.beta2);
                   const Tensor denominator = sqrt(second) / shared[2] + options.eps;
                   return item.value - (g * shared[0] + first * shared[1]) / denominator;
                 }});
}

RAdam::RAdam(std::vector<Variable> parameters, const RAdamOptions& options) {
  add(std::move(parameters), options);
}

void RAdam::add(std::vector<Variable> parameters, const RAdamOptions& options) {
  check_averages("RAdam", options);
  const double most = 2 / (1 - options.beta2) - 1;
  add_group(std::move(parameters),
            {.where = "RAdam",
             .rate = options.rate,
             .weight_decay = options.weight_decay,
             .decay = options.is_decoupled ? Decay::apart : Decay::in_gradient,
             .is_maximizing = options.is_maximizing,
             .state = alike(2),
             .shared =
                 [=](const Step& step) {
                   const Tensor bias = correction(options.beta2, step.count);
                   // How many squares the average stands for; of few, the deviation is infinite.
                   const Tensor length = most - 2 * step.count * (1 - bias) / bias;
                   const Tensor share =
                       (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length);
                   return std::vector{step.rate / correction(options.beta1, step.count),
                                      cast(length > 5.0, f64), sqrt(maximum(share, 0.0) * bias)};
                 },
             .formula =
                 [=](const Item& item, const std::vector<Tensor>& shared) {
                   const Tensor first = averaged(item.state[0], item.gradient, options.beta1);
                   const Tensor second =
                       averaged(item.state[1], square(item.gradient), options.beta2);
                   const Tensor adapted = shared[2] / (sqrt(second) + options.eps);
                   return item.value - first * shared[0] * where(shared[1], adapted, 1.0);
                 }});
}

// ---- sums and averages of squares

RmsProp::RmsProp(std::vector<Variable> parameters, const RmsPropOptions& options) {
  add(std::move(parameters), options);
}

void RmsProp::add(std::vector<Variable> parameters, const RmsPropOptions& options) {
  check("RmsProp", {{"decay", options.decay, Interval::share},
                    {"eps", options.eps, Interval::not_negative},
                    {"momentum", options.momentum, Interval::not_negative}});
  const int states = (options.momentum == 0 ? 1 : 2) + (options.is_centered ? 1 : 0);
  add_group(std::move(parameters),
            {.where = "RmsProp",
             .rate = options.rate,
             .weight_decay = options.weight_decay,
             .is_maximizing = options.is_maximizing,
             .state = alike(states),
             .shared = rate_alone,
             .formula = [=](const Item& item, const std::vector<Tensor>& shared) {
               const Tensor g = item.gradient;
               Tensor second = averaged(item.state[0], square(g), options.decay);
               if (options.is_centered) {
                 const Tensor first = averaged(item.state.back(), g, options.decay);
                 second = maximum(second - square(first), 0.0);  // rounding may be below
               }
               Tensor move = g / (sqrt(second) + options.eps);
               if (options.momentum != 0)
                 move = assigned(item.state[1], item.state[1] * options.momentum + move);
               return item.value - move * shared[0];
             }});
}

Adagrad::Adagrad(std::vector<Variable> parameters, const AdagradOptions& options) {
  add(std::move(parameters), options);
}

void Adagrad::add(std::vector<Variable> parameters, const AdagradOptions& options) {
  check("Adagrad", {{"eps", options.eps, Interval::not_negative},
                    {"rate_decay", options.rate_decay, Interval::not_negative},
                    {"initial", options.initial, Interval::not_negative}});
  add_group(std::move(parameters),
            {.where = "Adagrad",
             .rate = options.rate,
             .weight_decay = options.weight_decay,
             .is_maximizing = options.is_maximizing,
             .state = alike(1, options.initial),
             .shared =
                 [=](const Step& step) {
                   return std::vector{step.rate / (1 + (step.count - 1.0) * options.rate_decay)};
                 },
             .formula =
                 [=](const Item& item, const std::vector<Tensor>& shared) {
                   const Tensor sum =
                       assigned(item.state[0], item.state[0] + square(item.gradient));
                   return item.value - item.gradient / (sqrt(sum) + options.eps) * shared[0];
                 }});
}

Adadelta::Adadelta(std::vector<Variable> parameters, const AdadeltaOptions& options) {
  add(std::move(parameters), options);
}

void Adadelta::add(std::vector<Variable> parameters, const AdadeltaOptions& options) {
  check("Adadelta",
        {{"decay", options.decay, Interval::share}, {"eps", options.eps, Interval::not_negative}});
  add_group(std::move(parameters),
            {.where = "Adadelta",
             .rate = options.rate,
             .weight_decay = options.weight_decay,
             .is_maximizing = options.is_maximizing,
             .state = alike(2),
             .shared = rate_alone,
             .formula = [=](const Item& item, const std::vector<Tensor>& shared) {
               const Tensor second = averaged(item.state[0], square(item.gradient), options.decay);
               const Tensor move =
                   sqrt(item.state[1] + options.eps) / sqrt(second + options.eps) * item.gradient;
               averaged(item.state[1], square(move), options.decay);
               return item.value - move * shared[0];
             }});
}

Adafactor::Adafactor(std::vector<Variable> parameters, const AdafactorOptions& options) {
  add(std::move(parameters), options);
}

void Adafactor::add(std::vector<Variable> parameters, const AdafactorOptions& options) {
  check("Adafactor", {{"decay", options.decay, Interval::not_negative},
                      {"eps1", options.eps1, Interval::not_negative},
                      {"eps2", options.eps2, Interval::not_negative},
                      {"clipping", options.clipping, Interval::positive}});
  add_group(std::move(parameters),
            {.where = "Adafactor",
             .rate = options.rate,
             .weight_decay = options.weight_decay,
             .decay = Decay::apart,
             .is_maximizing = options.is_maximizing,
             .state =
                 [](const Variable& parameter) {
                   if (parameter.rank() < 2) return alike(1)(parameter);
                   Shape rows = parameter.shape(), columns = rows;
                   rows[rows.size() - 1] = 1;
                   columns[columns.size() - 2] = 1;
                   return std::vector{zeros(rows, parameter.dtype(), parameter.device()),
                                      zeros(columns, parameter.dtype(), parameter.device())};
                 },
             .shared =
                 [=](const Step& step) {
                   return std::vector{pow(step.count, -options.decay),
                                      minimum(step.rate, 1 / sqrt(step.count))};
                 },
             .formula =
                 [=](const Item& item, const std::vector<Tensor>& shared) {
                   const auto seen = [&](std::size_t i, const Tensor& squared) {
                     const Variable& average = item.state[i];
                     return assigned(average, average + (squared - average) * shared[0]);
                   };
                   const DType dtype = item.value.dtype();
                   const double eps = options.eps1 != 0 ? options.eps1 : epsilon(dtype);
                   const Tensor squared = square(item.gradient);
                   Tensor second;
                   if (item.parameter.rank() < 2) {
                     second = seen(0, squared);
                   } else {
                     const Tensor rows = seen(0, mean(squared, -1, KeepDims::yes));
                     const Tensor columns = seen(1, mean(squared, -2, KeepDims::yes));
                     second = rows * columns / maximum(mean(rows, -2, KeepDims::yes), eps);
                   }
                   const Tensor move = rsqrt(maximum(second, eps * eps)) * item.gradient;
                   const Tensor size = maximum(sqrt(mean(squares(item.parameter))), options.eps2);
                   const Tensor excess = maximum(sqrt(mean(squares(move))) / options.clipping, 1.0);
                   return item.value - move * (cast(size / excess, dtype) * shared[1]);
                 }});
}

// ---- moves of a given size

Lion::Lion(std::vector<Variable> parameters, const LionOptions& options) {
  add(std::move(parameters), options);
}

void Lion::add(std::vector<Variable> parameters, const LionOptions& options) {
  check("Lion", {{"beta1", options.beta1, Interval::below_one},
                 {"beta2", options.beta2, Interval::below_one}});
  add_group(std::move(parameters),
            {.where = "Lion",
             .rate = options.rate,
             .weight_decay = options.weight_decay,
             .decay = Decay::apart,
             .is_maximizing = options.is_maximizing,
             .state = alike(1),
             .shared = rate_alone,
             .formula = [=](const Item& item, const std::vector<Tensor>& shared) {
               const Tensor g = item.gradient;
               const Tensor move = sign(item.state[0] * options.beta1 + g * (1 - options.beta1));
               averaged(item.state[0], g, options.beta2);
               return item.value - move * shared[0];
             }});
}

Lamb::Lamb(std::vector<Variable> parameters, const LambOptions& options) {
  add(std::move(parameters), options);
}

void Lamb::add(std::vector<Variable> parameters, const LambOptions& options) {
  check_averages("Lamb", options);
  add_group(
      std::move(parameters),
      {.where = "Lamb",
       .rate = options.rate,
       .weight_decay = options.weight_decay,
       .decay = Decay::by_formula,
       .is_maximizing = options.is_maximizing,
       .state = alike(2),
       .shared =
           [=](const Step& step) {
             return std::vector{correction(options.beta1, step.count),
                                sqrt(correction(options.beta2, step.count)), step.rate};
           },
       .formula =
           [=](const Item& item, const std::vector<Tensor>& shared) {
             const Tensor first = averaged(item.state[0], item.gradient, options.beta1);
             const Tensor second = averaged(item.state[1], square(item.gradient), options.beta2);
             Tensor move = first / shared[0] / (sqrt(second) / shared[1] + options.eps);
             if (options.weight_decay != 0) move = move + item.value * options.weight_decay;
             const Tensor ours = sqrt(sum(squares(item.value))), its = sqrt(sum(squares(move)));
             const Tensor ratio = where(logical_and(ours > 0.0, its > 0.0), ours / its, 1.0);
             return item.value - move * (cast(ratio, item.value.dtype()) * shared[2]);
           }});
}

}  // namespace nitinol::nn
