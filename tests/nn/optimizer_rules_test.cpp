// Each optimizer's rule against loops over single numbers, written from the papers; compiled with
// the same bits, as a Plan that updates in place; saved and resumed.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <unistd.h>
#include <vector>

using namespace nitinol;

namespace {

/// A parameter as the loops see it: `rows` of `columns`; a vector is of 0 rows.
struct Grid {
  std::size_t rows, columns;
  std::vector<double> x;
  std::vector<double> a, b, c;  ///< state, zeros of as many elements at first
  double product = 1;
};

using Values = std::vector<Variable>;
/// Moves a grid against its gradient in step 1, 2, ...
using Loop = std::function<void(Grid& grid, const std::vector<double>& g, double step)>;
using MakeRule = std::function<std::unique_ptr<nn::Optimizer>(const Values& parameters)>;

struct RuleCase {
  std::string name;
  MakeRule make;
  Loop loop;
};

template <class O, class Options>
MakeRule made(const Options& options) {
  return [options](const Values& p) { return std::make_unique<O>(p, options); };
}

/// f(x, g, a, b, c) for each element, where g has its sign and a part that decays the weight.
template <class Options, class F>
Loop each(const Options& o, F f) {
  return [o, f](Grid& grid, const std::vector<double>& gradient, double t) {
    for (std::size_t i = 0; i < grid.x.size(); ++i) {
      const double g = (o.is_maximizing ? -gradient[i] : gradient[i]) + o.weight_decay * grid.x[i];
      f(grid.x[i], g, grid.a[i], grid.b[i], grid.c[i], t);
    }
  };
}

/// Weight decay apart from the gradient comes first; the loop is that of options without.
template <class Options>
Loop apart(const Options& o, const std::function<Loop(Options)>& make) {
  Options without = o;
  without.weight_decay = 0;
  return [o, loop = make(without)](Grid& grid, const std::vector<double>& g, double t) {
    for (double& x : grid.x) x *= 1 - o.rate * o.weight_decay;
    loop(grid, g, t);
  };
}

double average(double& state, double value, double decay) {
  return state = state * decay + value * (1 - decay);
}

Loop sgd(nn::SgdOptions o) {
  return each(o, [o](double& x, double g, double& v, double&, double&, double t) {
    v = t == 1 ? g : o.momentum * v + (1 - o.dampening) * g;
    x -= o.rate * (o.momentum == 0 ? g : o.is_nesterov ? g + o.momentum * v : v);
  });
}

Loop adam(nn::AdamOptions o) {
  return each(o, [o](double& x, double g, double& m, double& v, double& most, double t) {
    average(m, g, o.beta1);
    average(v, g * g, o.beta2);
    most = std::max(most, v);
    const double second = (o.is_amsgrad ? most : v) / (1 - std::pow(o.beta2, t));
    x -= o.rate * m / (1 - std::pow(o.beta1, t)) / (std::sqrt(second) + o.eps);
  });
}

Loop adamax(nn::AdamaxOptions o) {
  return each(o, [o](double& x, double g, double& m, double& u, double&, double t) {
    average(m, g, o.beta1);
    u = std::max(o.beta2 * u, std::abs(g) + o.eps);
    x -= o.rate / (1 - std::pow(o.beta1, t)) * m / u;
  });
}

Loop nadam(nn::NAdamOptions o) {
  return [o](Grid& grid, const std::vector<double>& gradient, double t) {
    const auto mu = [&](double n) {
      return o.beta1 * (1 - 0.5 * std::pow(0.96, n * o.momentum_decay));
    };
    const double now = mu(t), next = mu(t + 1);
    const double product = grid.product *= now;
    each(o, [&](double& x, double g, double& m, double& v, double&, double) {
      average(m, g, o.beta1);
      average(v, g * g, o.beta2);
      const double ahead = next * m / (1 - product * next) + (1 - now) * g / (1 - product);
      x -= o.rate * ahead / (std::sqrt(v / (1 - std::pow(o.beta2, t))) + o.eps);
    })(grid, gradient, t);
  };
}

Loop radam(nn::RAdamOptions o) {
  return each(o, [o](double& x, double g, double& m, double& v, double&, double t) {
    average(m, g, o.beta1);
    average(v, g * g, o.beta2);
    const double left = std::pow(o.beta2, t), most = 2 / (1 - o.beta2) - 1;
    const double length = most - 2 * t * left / (1 - left);
    double move = m / (1 - std::pow(o.beta1, t));
    if (length > 5) {
      const double share = (length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length);
      move *= std::sqrt(share) * std::sqrt(1 - left) / (std::sqrt(v) + o.eps);
    }
    x -= o.rate * move;
  });
}

Loop rms_prop(nn::RmsPropOptions o) {
  return each(o, [o](double& x, double g, double& v, double& mean, double& velocity, double) {
    average(v, g * g, o.decay);
    average(mean, g, o.decay);
    const double second = o.is_centered ? v - mean * mean : v;
    velocity = o.momentum * velocity + g / (std::sqrt(second) + o.eps);
    x -= o.rate * velocity;
  });
}

Loop adagrad(nn::AdagradOptions o) {
  return each(o, [o](double& x, double g, double& sum, double&, double&, double t) {
    sum = (t == 1 ? o.initial : sum) + g * g;
    x -= o.rate / (1 + (t - 1) * o.rate_decay) * g / (std::sqrt(sum) + o.eps);
  });
}

Loop adadelta(nn::AdadeltaOptions o) {
  return each(o, [o](double& x, double g, double& v, double& moves, double&, double) {
    average(v, g * g, o.decay);
    const double move = std::sqrt(moves + o.eps) / std::sqrt(v + o.eps) * g;
    average(moves, move * move, o.decay);
    x -= o.rate * move;
  });
}

double mean_square(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return sum / static_cast<double>(values.size());
}

Loop adafactor(nn::AdafactorOptions o) {
  return [o](Grid& grid, const std::vector<double>& gradient, double t) {
    const double eps = o.eps1 != 0 ? o.eps1 : std::ldexp(1, -52);
    const double weight = std::pow(t, -o.decay);
    const double size = std::max(o.eps2, std::sqrt(mean_square(grid.x)));
    std::vector<double> move(grid.x.size());
    const std::size_t rows = grid.rows, columns = grid.columns;
    if (rows == 0) {
      for (std::size_t i = 0; i < columns; ++i) {
        average(grid.a[i], gradient[i] * gradient[i], 1 - weight);
        move[i] = gradient[i] / std::sqrt(std::max(grid.a[i], eps * eps));
      }
    } else {
      std::vector<double> of_row(rows), of_column(columns);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t k = 0; k < columns; ++k) {
          const double square = gradient[i * columns + k] * gradient[i * columns + k];
          of_row[i] += square / static_cast<double>(columns);
          of_column[k] += square / static_cast<double>(rows);
        }
      }
      double mean = 0;
      for (std::size_t i = 0; i < rows; ++i)
        mean += average(grid.a[i], of_row[i], 1 - weight) / static_cast<double>(rows);
      for (std::size_t k = 0; k < columns; ++k) average(grid.b[k], of_column[k], 1 - weight);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t k = 0; k < columns; ++k) {
          const double second = grid.a[i] * grid.b[k] / std::max(mean, eps);
          const double g = gradient[i * columns + k];
          move[i * columns + k] = g / std::sqrt(std::max(second, eps * eps));
        }
      }
    }
    const double excess = std::max(1.0, std::sqrt(mean_square(move)) / o.clipping);
    const double rate = size * std::min(o.rate, 1 / std::sqrt(t)) / excess;
    for (std::size_t i = 0; i < move.size(); ++i) {
      grid.x[i] *= 1 - o.rate * o.weight_decay;
      grid.x[i] -= (o.is_maximizing ? -rate : rate) * move[i];
    }
  };
}

Loop lion(nn::LionOptions o) {
  return each(o, [o](double& x, double g, double& m, double&, double&, double) {
    const double c = o.beta1 * m + (1 - o.beta1) * g;
    x -= o.rate * (c > 0 ? 1 : c < 0 ? -1 : 0);
    average(m, g, o.beta2);
  });
}

Loop lamb(nn::LambOptions o) {
  return [o](Grid& grid, const std::vector<double>& gradient, double t) {
    std::vector<double> move(grid.x.size());
    for (std::size_t i = 0; i < move.size(); ++i) {
      const double g = o.is_maximizing ? -gradient[i] : gradient[i];
      const double m = average(grid.a[i], g, o.beta1) / (1 - std::pow(o.beta1, t));
      const double v = average(grid.b[i], g * g, o.beta2) / (1 - std::pow(o.beta2, t));
      move[i] = m / (std::sqrt(v) + o.eps) + o.weight_decay * grid.x[i];
    }
    const double ours = std::sqrt(mean_square(grid.x)), its = std::sqrt(mean_square(move));
    const double ratio = ours > 0 && its > 0 ? ours / its : 1;
    for (std::size_t i = 0; i < move.size(); ++i) grid.x[i] -= o.rate * ratio * move[i];
  };
}

template <class O, class Options, class F>
RuleCase rule_case(const std::string& name, const Options& options, const F& loop) {
  return {name, made<O>(options), loop(options)};
}

/// Each with settings that are all away from their defaults, and all of them downwards and upwards.
std::vector<RuleCase> rule_cases() {
  std::vector<RuleCase> all;
  for (const bool up : {false, true}) {
    const nn::SgdOptions damped = {
        .rate = 0.1, .momentum = 0.8, .weight_decay = 0.02, .dampening = 0.3, .is_maximizing = up};
    const nn::SgdOptions nesterov = {.rate = 0.1,
                                     .momentum = 0.8,
                                     .weight_decay = 0.02,
                                     .is_nesterov = true,
                                     .is_maximizing = up};
    const nn::AdamOptions of_adam = {.rate = 0.1,
                                     .beta1 = 0.7,
                                     .beta2 = 0.9,
                                     .eps = 1e-3,
                                     .weight_decay = 0.02,
                                     .is_maximizing = up};
    nn::AdamOptions amsgrad = of_adam;
    amsgrad.is_amsgrad = true;
    const nn::AdamaxOptions of_adamax = {.rate = 0.1,
                                         .beta1 = 0.7,
                                         .beta2 = 0.9,
                                         .eps = 1e-3,
                                         .weight_decay = 0.02,
                                         .is_maximizing = up};
    nn::NAdamOptions of_nadam = {.rate = 0.1,
                                 .beta1 = 0.7,
                                 .beta2 = 0.9,
                                 .eps = 1e-3,
                                 .weight_decay = 0.02,
                                 .momentum_decay = 0.1,
                                 .is_maximizing = up};
    nn::RAdamOptions of_radam = {.rate = 0.1,
                                 .beta1 = 0.7,
                                 .beta2 = 0.95,
                                 .eps = 1e-3,
                                 .weight_decay = 0.02,
                                 .is_maximizing = up};
    const nn::RmsPropOptions of_rms = {
        .rate = 0.02, .decay = 0.8, .eps = 1e-3, .weight_decay = 0.02, .is_maximizing = up};
    nn::RmsPropOptions with_momentum = of_rms, centered = of_rms;
    with_momentum.momentum = centered.momentum = 0.6;
    centered.is_centered = true;
    const nn::AdagradOptions of_adagrad = {.rate = 0.1,
                                           .eps = 1e-3,
                                           .weight_decay = 0.02,
                                           .rate_decay = 0.05,
                                           .initial = 0.2,
                                           .is_maximizing = up};
    const nn::AdadeltaOptions of_adadelta = {
        .rate = 2, .decay = 0.8, .eps = 1e-4, .weight_decay = 0.02, .is_maximizing = up};
    const nn::AdafactorOptions of_adafactor = {
        .rate = 0.4, .decay = 0.7, .clipping = 0.8, .weight_decay = 0.02, .is_maximizing = up};
    const nn::AdafactorOptions floors = {.rate = 0.05, .eps1 = 0.4, .eps2 = 2, .is_maximizing = up};
    const nn::LionOptions of_lion = {
        .rate = 0.05, .beta1 = 0.6, .beta2 = 0.9, .weight_decay = 0.02, .is_maximizing = up};
    const nn::LambOptions of_lamb = {.rate = 0.1,
                                     .beta1 = 0.7,
                                     .beta2 = 0.9,
                                     .eps = 1e-3,
                                     .weight_decay = 0.02,
                                     .is_maximizing = up};
    all.push_back(rule_case<nn::Sgd>("Sgd with dampening", damped, sgd));
    all.push_back(rule_case<nn::Sgd>("Sgd with Nesterov", nesterov, sgd));
    all.push_back(rule_case<nn::Adam>("Adam", of_adam, adam));
    all.push_back(rule_case<nn::Adam>("Adam with amsgrad", amsgrad, adam));
    all.push_back({"AdamW with amsgrad",
                   made<nn::AdamW>(nn::AdamWOptions{.rate = amsgrad.rate,
                                                    .beta1 = amsgrad.beta1,
                                                    .beta2 = amsgrad.beta2,
                                                    .eps = amsgrad.eps,
                                                    .weight_decay = amsgrad.weight_decay,
                                                    .is_amsgrad = true,
                                                    .is_maximizing = amsgrad.is_maximizing}),
                   apart<nn::AdamOptions>(amsgrad, adam)});
    all.push_back(rule_case<nn::Adamax>("Adamax", of_adamax, adamax));
    all.push_back(rule_case<nn::NAdam>("NAdam", of_nadam, nadam));
    of_nadam.is_decoupled = true;
    all.push_back(
        {"NAdam, decoupled", made<nn::NAdam>(of_nadam), apart<nn::NAdamOptions>(of_nadam, nadam)});
    all.push_back(rule_case<nn::RAdam>("RAdam", of_radam, radam));
    of_radam.is_decoupled = true;
    all.push_back(
        {"RAdam, decoupled", made<nn::RAdam>(of_radam), apart<nn::RAdamOptions>(of_radam, radam)});
    of_radam.beta2 = 0.6;  // whose average is never long enough
    all.push_back(
        {"RAdam of few", made<nn::RAdam>(of_radam), apart<nn::RAdamOptions>(of_radam, radam)});
    all.push_back(rule_case<nn::RmsProp>("RmsProp", of_rms, rms_prop));
    all.push_back(rule_case<nn::RmsProp>("RmsProp with momentum", with_momentum, rms_prop));
    all.push_back(rule_case<nn::RmsProp>("RmsProp, centered", centered, rms_prop));
    all.push_back(rule_case<nn::Adagrad>("Adagrad", of_adagrad, adagrad));
    all.push_back(rule_case<nn::Adadelta>("Adadelta", of_adadelta, adadelta));
    all.push_back(rule_case<nn::Adafactor>("Adafactor", of_adafactor, adafactor));
    all.push_back(rule_case<nn::Adafactor>("Adafactor at its floors", floors, adafactor));
    all.push_back({"Lion", made<nn::Lion>(of_lion), apart<nn::LionOptions>(of_lion, lion)});
    all.push_back(rule_case<nn::Lamb>("Lamb", of_lamb, lamb));
    const nn::LbfgsOptions of_lbfgs = {.rate = 0.3, .history = 4, .is_maximizing = up};
    all.push_back({"Lbfgs", made<nn::Lbfgs>(of_lbfgs), {}});  // its loop is below
  }
  return all;
}

/// Shapes [3, 4] and [5].
Values rule_parameters(DType dtype = f64) {
  return {parameter(cast(sin(reshape(arange(12, f64), {3, 4}) * 1.3 + 0.4), dtype)),
          parameter(cast(cos(arange(5, f64) * 2.1), dtype))};
}

/// Its gradients differ from element to element and change their signs.
Tensor rule_loss(const Values& p) {
  Tensor loss;
  for (const Variable& each : p) {
    const Tensor weights = reshape(arange(each.size(), f64), each.shape()) * 0.3 + 1.0;
    const Tensor part = sum(cos(each * cast(weights, each.dtype())));
    loss = loss.is_defined() ? loss + part : part;
  }
  return loss;
}

std::vector<double> rule_gradient(const Grid& grid) {
  std::vector<double> g(grid.x.size());
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double weight = static_cast<double>(i) * 0.3 + 1;
    g[i] = -weight * std::sin(grid.x[i] * weight);
  }
  return g;
}

void rule_step(const Values& p, const nn::Optimizer& optimizer) {
  optimizer.zero_grad();
  rule_loss(p).backward();
  optimizer.step();
}

void check_same(const nn::Optimizer& a, const nn::Optimizer& b) {
  const auto left = nn::named_variables(a), right = nn::named_variables(b);
  REQUIRE(left.size() == right.size());
  for (std::size_t i = 0; i < left.size(); ++i) {
    INFO(left[i].name);
    REQUIRE(same_bits(left[i].variable.get(), right[i].variable.get()));
  }
}

}  // namespace

TEST_CASE("each optimizer's steps are its paper's, number by number", "[nn][reference]") {
  for (const RuleCase& c : rule_cases()) {
    if (!c.loop) continue;
    const Values p = rule_parameters();
    const auto optimizer = c.make(p);
    std::vector<Grid> grids;
    for (const Variable& each : p) {
      const std::vector<double> x = each.get().to_vector<double>(), none(x.size());
      const bool is_matrix = each.rank() == 2;
      grids.push_back({.rows = is_matrix ? 3U : 0U,
                       .columns = is_matrix ? 4U : 5U,
                       .x = x,
                       .a = none,
                       .b = none,
                       .c = none});
    }
    for (int step = 1; step <= 12; ++step) {
      rule_step(p, *optimizer);
      for (std::size_t k = 0; k < p.size(); ++k) {
        c.loop(grids[k], rule_gradient(grids[k]), step);
        const std::vector<double> got = p[k].to_vector<double>();
        for (std::size_t i = 0; i < got.size(); ++i) {
          INFO(c.name << ", step " << step << ", element " << i << " of parameter " << k);
          REQUIRE(got[i] == Approx(grids[k].x[i]).epsilon(1e-12).margin(1e-12));
        }
      }
    }
  }
}

TEST_CASE("each optimizer's compiled step is a Plan with eager's bits", "[nn][jit]") {
  for (const DType dtype : {f32, f64}) {
    for (const RuleCase& c : rule_cases()) {
      INFO(c.name);
      const Values a = rule_parameters(dtype), b = rule_parameters(dtype);
      const auto of_a = c.make(a), of_b = c.make(b);
      const auto step = compile(
          [&](const Tensor& x) {
            rule_step(a, *of_a);
            return x + 1.0F;
          },
          {.check = Check::never});
      for (int i = 0; i < 12; ++i) {
        of_a->set_rate(0.1 / (i + 1));  // compiles nothing
        of_b->set_rate(0.1 / (i + 1));
        static_cast<void>(step(ones({1})));
        rule_step(b, *of_b);
        INFO("step " << i);
        check_same(*of_a, *of_b);
      }
      const Explanation explanation = step.explain();
      INFO(explanation);
      REQUIRE(explanation.signatures.size() == 1);
      CHECK(explanation.signatures[0].tier == Tier::traced);
      CHECK(explanation.plan_calls >= 8);
    }
  }
}

TEST_CASE("each optimizer's Plan updates parameters and state in place", "[nn][jit]") {
  for (const RuleCase& c : rule_cases()) {
    const Values p = {parameter(sin(reshape(arange(40 * 60, f32), {40, 60})))};
    const auto optimizer = c.make(p);
    const auto step = compile(
        [&](const Tensor& x) {
          rule_step(p, *optimizer);
          return x + 1.0F;
        },
        {.check = Check::never});
    test::settle(step, ones({1}));
    std::size_t held = 0;
    for (const auto& [name, variable] : nn::named_variables(*optimizer)) {
      if (variable.size() == p[0].size()) held += static_cast<std::size_t>(variable.size()) * 4;
    }
    // A kernel that reads all of them twice, for a norm and then to move by it, writes elsewhere.
    if (c.name == "Lamb") held = 0;
    INFO(c.name);
    INFO(step.explain());
    CHECK(step.explain().signatures.at(0).tier == Tier::traced);
    CHECK(step.explain().signatures.at(0).plan.in_place_bytes >= held);
  }
}

TEST_CASE("each optimizer resumes from a file with the same bits", "[nn]") {
  const auto path =
      std::filesystem::temp_directory_path() / ("nitinol_rules_" + std::to_string(getpid()));
  for (const RuleCase& c : rule_cases()) {
    INFO(c.name);
    const Values a = rule_parameters(f32), b = rule_parameters(f32);
    const auto of_a = c.make(a), of_b = c.make(b);
    for (int i = 0; i < 3; ++i) rule_step(a, *of_a);
    nn::save(path, *of_a);
    nn::load(path, *of_b);
    for (int i = 0; i < 3; ++i) rule_step(a, *of_a), rule_step(b, *of_b);
    check_same(*of_a, *of_b);
  }
  std::filesystem::remove(path);
}

TEST_CASE("each optimizer moves parameters of every floating dtype", "[nn]") {
  for (const RuleCase& c : rule_cases()) {
    for (const DType dtype : {f16, bf16, f32, f64}) {
      INFO(c.name << ", " << name_of(dtype));
      const Values p = rule_parameters(dtype);
      const auto optimizer = c.make(p);
      for (int i = 0; i < 3; ++i) rule_step(p, *optimizer);
      for (const Variable& each : p) {
        CHECK(each.dtype() == dtype);
        CHECK(all(isfinite(each)).item<bool>());
      }
    }
  }
}

TEST_CASE("Lamb moves parameters that are zero, and not those without a gradient", "[nn]") {
  const Variable none = parameter(zeros({3})), still = parameter(ones({2}));
  const nn::Lamb optimizer({none, still}, {.rate = 0.5, .eps = 0.1});
  none.set_grad(ones({3}));
  still.set_grad(zeros({2}));
  optimizer.step();
  CHECK(none.to_vector<float>()[0] == Approx(-0.5 / 1.1));  // as long as Adam's
  CHECK(same_bits(still.get(), ones({2})));
}

TEST_CASE("Adafactor's product of rows and columns has a floor", "[nn]") {
  const Variable p = parameter(zeros({2, 2}, f64));
  const nn::Adafactor optimizer({p}, {.rate = 1, .eps1 = 0.2, .eps2 = 1, .clipping = 9});
  p.set_grad(full({2, 2}, 0.3, f64));
  optimizer.step();
  CHECK(p.to_vector<double>()[0] == Approx(-0.3 / std::sqrt(0.09 * 0.09 / 0.2)).epsilon(1e-12));
}

TEST_CASE("RmsProp divides by no root of a negative deviation", "[nn]") {
  const Variable p = parameter(zeros({1000}));
  const nn::RmsProp optimizer({p}, {.decay = 0.5, .is_centered = true});
  for (int i = 0; i < 60; ++i) {  // the mean of squares comes to be the square of the mean
    p.set_grad(linspace(0.1, 2, 1000));
    optimizer.step();
  }
  CHECK(all(isfinite(p)).item<bool>());
}
