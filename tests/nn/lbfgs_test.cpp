// L-BFGS against loops over single numbers, and its line search.
#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <utility>
#include <vector>

namespace nitinol::lbfgs_test {

using Values = std::vector<Variable>;

/// Shapes [3, 4] and [5].
Values start_values() {
  return {parameter(sin(reshape(arange(12, f64), {3, 4}) * 1.3 + 0.4)),
          parameter(cos(arange(5, f64) * 2.1))};
}

/// Its gradients differ from element to element and change their signs.
Tensor loss_of(const Values& p) {
  Tensor loss;
  for (const Variable& each : p) {
    const Tensor weights = reshape(arange(each.size(), f64), each.shape()) * 0.3 + 1.0;
    const Tensor part = sum(cos(each * weights));
    loss = loss.is_defined() ? loss + part : part;
  }
  return loss;
}

void make_step(const Values& p, const nn::Optimizer& optimizer) {
  optimizer.zero_grad();
  loss_of(p).backward();
  optimizer.step();
}

using Matrix = std::vector<std::vector<double>>;

double dot(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// (1 - s y' / (s y)) h (1 - y s' / (s y)) + s s' / (s y), written out.
Matrix bfgs(const Matrix& h, const std::vector<double>& s, const std::vector<double>& y) {
  const double curvature = dot(s, y);
  std::vector<double> hy(s.size());
  for (std::size_t i = 0; i < s.size(); ++i) hy[i] = dot(h[i], y);
  const double weight = (1 + dot(y, hy) / curvature) / curvature;
  Matrix next = h;
  for (std::size_t i = 0; i < s.size(); ++i) {
    for (std::size_t k = 0; k < s.size(); ++k)
      next[i][k] += weight * s[i] * s[k] - (hy[i] * s[k] + s[i] * hy[k]) / curvature;
  }
  return next;
}

TEST_CASE("Lbfgs moves by the inverse second derivatives of its last steps", "[nn][reference]") {
  for (const bool up : {false, true}) {
    const Values p = start_values();
    const nn::Lbfgs optimizer(p, {.rate = 0.3, .history = 3, .is_maximizing = up});
    std::vector<double> x, before, move;
    for (const Variable& each : p) {
      for (const double value : each.get().to_vector<double>()) x.push_back(value);
    }
    std::vector<std::pair<std::vector<double>, std::vector<double>>> past;  // moves and changes
    for (int step = 1; step <= 12; ++step) {
      make_step(p, optimizer);
      std::vector<double> g(x.size());
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double weight = static_cast<double>(i < 12 ? i : i - 12) * 0.3 + 1;
        g[i] = (up ? 1 : -1) * weight * std::sin(x[i] * weight);
      }
      double guess = 1, sum = 0;
      for (const double each : g) sum += std::abs(each);
      if (step > 1) {
        std::vector<double> change(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) change[i] = g[i] - before[i];
        if (dot(move, change) > 1e-10) past.emplace_back(move, change);
        if (past.size() > 3) past.erase(past.begin());
      }
      if (!past.empty())
        guess = dot(past.back().first, past.back().second) /
                dot(past.back().second, past.back().second);
      Matrix h(x.size(), std::vector<double>(x.size()));
      for (std::size_t i = 0; i < x.size(); ++i) h[i][i] = guess;
      for (const auto& [s, y] : past) h = bfgs(h, s, y);
      move.assign(x.size(), 0);
      for (std::size_t i = 0; i < x.size(); ++i) {
        move[i] = -0.3 * (step == 1 ? std::min(1.0, 1 / sum) : 1.0) * dot(h[i], g);
        x[i] += move[i];
      }
      before = g;
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double got = i < 12 ? p[0].to_vector<double>()[i] : p[1].to_vector<double>()[i - 12];
        INFO("step " << step << ", element " << i << (up ? ", upwards" : ""));
        REQUIRE(got == Approx(x[i]).epsilon(1e-9).margin(1e-9));
      }
    }
  }
}

TEST_CASE("Lbfgs minimizes by steps whose lengths are searched", "[nn]") {
  // H. Rosenbrock, 1960
  const auto rosenbrock = [](const Tensor& x) {
    return square(1.0 - x[0]) + square(x[1] - square(x[0])) * 100.0;
  };
  for (const bool up : {false, true}) {
    for (const DType dtype : {f64, f32}) {
      const Variable x = parameter(tensor({-1.2, 1.0}).to(dtype));
      const nn::Lbfgs optimizer({x}, {.is_maximizing = up});
      std::vector<double> losses;
      const auto loss = [&] {
        const Tensor value = rosenbrock(x) * (up ? -1.0 : 1.0);
        value.backward();
        losses.push_back(value.to(f64).item<double>());
        return value;
      };
      const nn::Minimum found = optimizer.minimize(loss, {.iterations = 100});
      INFO(found.iterations << " iterations, " << found.evaluations << " evaluations");
      CHECK(max(abs(x - 1.0)).to(f64).item<double>() < (dtype == f64 ? 1e-6 : 1e-2));
      CHECK(found.is_converged);
      CHECK(found.iterations < 60);  // SciPy's takes 37 of 44 evaluations
      CHECK(found.evaluations < 90);
      CHECK(found.evaluations == static_cast<int64_t>(losses.size()));
      CHECK(found.loss == (up ? -1 : 1) * rosenbrock(x).to(f64).item<double>());
    }
  }
  // Goes on where it was, and what is written between is the state of all optimizers.
  const auto minimized = [&](std::initializer_list<int64_t> parts) {
    const Variable x = parameter(tensor({-1.2, 1.0}));
    const nn::Lbfgs optimizer({x});
    for (const int64_t iterations : parts) {
      (void)optimizer.minimize(
          [&] {
            const Tensor value = rosenbrock(x);
            value.backward();
            return value;
          },
          {.iterations = iterations});
    }
    return x.get();
  };
  CHECK(same_bits(minimized({12}), minimized({5, 7})));
}

TEST_CASE("Lbfgs remembers the steps that its search has made", "[nn]") {
  const Variable x = parameter(tensor({3.0, -2.0}));
  const nn::Lbfgs optimizer({x});
  const auto loss = [&] {
    const Tensor value = sum(square(x)) * 1e-3;
    value.backward();
    return value;
  };
  for (int i = 0; i < 2; ++i) {
    const Tensor before = x;
    const nn::Minimum found = optimizer.minimize(loss, {.iterations = 1});
    CHECK((i > 0 || found.evaluations > 2));  // the first step is found too short
    Tensor move;
    for (const nn::NamedVariable& named : nn::named_variables(optimizer))
      if (named.name == "groups.0.group_state.1") move = named.variable;
    REQUIRE(move.is_defined());
    CHECK(max(abs(x - before - move)).item<double>() < 1e-15);
  }
  CHECK(max(abs(x.get())).item<double>() < 1e-6);  // of a parabola all is known by then
}

TEST_CASE("Lbfgs minimizes with a compiled loss, of several groups", "[nn][jit]") {
  const auto outcome = [](bool is_compiled) {
    const Variable a = parameter(full({3}, 2.0, f64)), b = parameter(full({2, 2}, -1.0, f64));
    nn::Lbfgs optimizer({a}, {.history = 3});
    optimizer.add({b}, {.history = 5});
    const auto loss = [&] {
      const Tensor value = sum(square(square(a) - 3.0)) + sum(exp(b) - b * 2.0) + sum(a) * sum(b);
      value.backward();
      return stop_gradient(value);
    };
    const auto compiled = compile(loss);
    const nn::Minimum found =
        is_compiled ? optimizer.minimize([&] { return compiled(); }, {.iterations = 9})
                    : optimizer.minimize(loss, {.iterations = 9});
    if (is_compiled) CHECK(compiled.explain().plan_calls > 0);
    return std::pair(concat({a, flatten(b)}), found.loss);
  };
  const auto eager = outcome(false), compiled = outcome(true);
  CHECK(same_bits(eager.first, compiled.first));
  CHECK(eager.second == compiled.second);
}

TEST_CASE("Lbfgs stays where it cannot descend, and refuses what is no loss", "[nn][errors]") {
  const Variable x = parameter(tensor({1.0, 2.0}));
  const nn::Lbfgs optimizer({x});
  const auto of = [&](const auto& f) {
    return [&x, f] {
      const Tensor value = f(x);
      if (value.size() == 1) value.backward();
      return value;
    };
  };
  const nn::Minimum flat = optimizer.minimize(of([](const Tensor& v) { return sum(v * 0.0); }));
  CHECK(flat.is_converged);
  CHECK(flat.iterations == 0);
  CHECK(flat.evaluations == 1);
  // Where values are as large as before but the slope promises more, all stays as it was.
  const nn::Minimum lie = optimizer.minimize(
      of([](const Tensor& v) { return sum(v) - stop_gradient(sum(v)); }), {.evaluations = 4});
  CHECK(!lie.is_converged);
  CHECK(lie.iterations == 0);
  CHECK(same_bits(x.get(), tensor({1.0, 2.0})));
  CHECK_THROWS_WITH(optimizer.minimize(of([](const Tensor& v) { return v; })),
                    Catch::Contains("Lbfgs::minimize: the loss") && Catch::Contains("one number"));
  CHECK_THROWS_WITH(optimizer.minimize(of([](const Tensor& v) { return sum(v) / 0.0; })),
                    Catch::Contains("the loss at the start") && Catch::Contains("got inf"));
  const auto good = of([](const Tensor& v) { return sum(square(v)); });
  CHECK_THROWS_WITH(optimizer.minimize(good, {.iterations = 0}), Catch::Contains("`iterations`"));
  CHECK_THROWS_WITH(optimizer.minimize(good, {.evaluations = 0}), Catch::Contains("`evaluations`"));
  CHECK_THROWS_WITH(optimizer.minimize(good, {.change_tolerance = -1}),
                    Catch::Contains("`change_tolerance`"));
  std::vector<Tensor> seen;
  const Variable w = parameter(tensor({1.0, 2.0}));
  const auto of_w = [&] {
    const Tensor value = sum(square(square(w)));
    seen.push_back(w);
    if (seen.size() == 3) throw std::runtime_error("no data");
    value.backward();
    return value;
  };
  CHECK_THROWS_WITH(nn::Lbfgs({w}).minimize(of_w), "no data");
  REQUIRE(seen.size() == 3);
  CHECK(!same_bits(seen[2], seen[1]));
  CHECK(same_bits(w.get(), seen[1]));  // where the second iteration began
  const Variable y = parameter(tensor({1.0}));
  nn::Lbfgs both({x});
  both.add({y}, {.is_maximizing = true});
  CHECK_THROWS_WITH(both.minimize(good), Catch::Contains("some maximize and some minimize"));
  CHECK(same_bits(x.get(), tensor({1.0, 2.0})));
}

TEST_CASE("Lbfgs takes parameters without a gradient as flat, and ends in the minimum", "[nn]") {
  const Variable p = parameter(ones({4}, f64)), unused = parameter(ones({2}, f64));
  const nn::Lbfgs optimizer({p, unused});
  const Tensor weights = arange(1, 5, 1, f64);
  for (int i = 0; i < 20; ++i) {
    optimizer.zero_grad();
    sum(square(p * weights - 1.0)).backward();
    optimizer.step();
  }
  CHECK(max(abs(p * weights - 1.0)).item<double>() < 1e-8);
  CHECK(same_bits(unused.get(), ones({2}, f64)));
  CHECK_THROWS_WITH(nn::Lbfgs({unused}).step(), Catch::Contains("no parameter has a gradient"));
}

}  // namespace nitinol::lbfgs_test
