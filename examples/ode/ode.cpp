// Solves the reaction and diffusion of Gray and Scott by a Runge-Kutta pair of orders 4 and 5,
// whose steps are as long as their error allows: a loop on data.
//
// The whole solver is given to compile(). Its `while` and its `if` run at each call as they are
// written; the six evaluations of the equations between two looks at the error run by one Plan,
// whatever the number of steps. The report shows the looks, and how often steps were accepted.
//
// Pearson, Complex Patterns in a Simple System, Science 261 (1993); Dormand and Prince, A family of
// embedded Runge-Kutta formulae, J. Comput. Appl. Math. 6 (1980).

#include "examples/options.h"
#include <nitinol/nitinol.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

namespace {

using nitinol::Tensor;

/// Four neighbours and the middle, on a torus.
Tensor laplacian(const Tensor& x) {
  return roll(x, {1}, {0}) + roll(x, {-1}, {0}) + roll(x, {1}, {1}) + roll(x, {-1}, {1}) - 4.0 * x;
}

/// What the concentrations u and v, state[0] and state[1], change by in a unit of time.
Tensor derivative(const Tensor& state) {
  const Tensor u = state[0], v = state[1];
  const Tensor reaction = u * v * v;
  return nitinol::stack({0.16 * laplacian(u) - reaction + 0.035 * (1.0 - u),
                         0.08 * laplacian(v) + reaction - 0.1 * v});
}

/// One step of length h: the state after it, and how far the formula of order 4 is from it.
std::pair<Tensor, Tensor> dormand_prince(const Tensor& y, double h) {
  const Tensor k1 = derivative(y);
  const Tensor k2 = derivative(y + h * (k1 / 5.0));
  const Tensor k3 = derivative(y + h * (3.0 / 40 * k1 + 9.0 / 40 * k2));
  const Tensor k4 = derivative(y + h * (44.0 / 45 * k1 - 56.0 / 15 * k2 + 32.0 / 9 * k3));
  const Tensor k5 = derivative(
      y + h * (19372.0 / 6561 * k1 - 25360.0 / 2187 * k2 + 64448.0 / 6561 * k3 - 212.0 / 729 * k4));
  const Tensor k6 = derivative(y + h * (9017.0 / 3168 * k1 - 355.0 / 33 * k2 + 46732.0 / 5247 * k3 +
                                        49.0 / 176 * k4 - 5103.0 / 18656 * k5));
  const Tensor next = y + h * (35.0 / 384 * k1 + 500.0 / 1113 * k3 + 125.0 / 192 * k4 -
                               2187.0 / 6784 * k5 + 11.0 / 84 * k6);
  const Tensor k7 = derivative(next);
  return {next, h * (71.0 / 57600 * k1 - 71.0 / 16695 * k3 + 71.0 / 1920 * k4 -
                     17253.0 / 339200 * k5 + 22.0 / 525 * k6 - 1.0 / 40 * k7)};
}

/// The state at time `end`.
Tensor solve(const Tensor& start, double end, double tolerance) {
  Tensor state = start;
  double time = 0, h = 1;
  while (time < end) {
    h = std::min(h, end - time);
    const auto [next, difference] = dormand_prince(state, h);
    const double error = max(abs(difference)).item<float>();
    if (error <= tolerance) {
      time += h;
      state = next;
    }
    h *= std::clamp(0.9 * std::pow(tolerance / (error + 1e-12), 0.2), 0.2, 5.0);
  }
  return state;
}

/// All of u, and some v in the middle, with a little noise.
Tensor seeded(int64_t size) {
  const int64_t from = size * 2 / 5, to = size * 3 / 5;
  const Tensor nothing = nitinol::zeros({size, size});
  const Tensor v = nothing.at({nitinol::Range(from, to), nitinol::Range(from, to)}).set(0.25);
  return nitinol::stack({1.0 - 2.0 * v, v}) + 0.01 * nitinol::rand({2, size, size});
}

struct Options {
  int64_t size = 128;
  double end = 50, tolerance = 1e-4;
  int threads = 1;
  std::string json;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  const std::vector<float> p = a.to_vector<float>(), q = b.to_vector<float>();
  return p.size() == q.size() && std::memcmp(p.data(), q.data(), p.size() * sizeof p[0]) == 0;
}

/// The result of f(), which takes so many seconds.
template <class F>
std::pair<Tensor, double> timed(const F& f) {
  const auto start = std::chrono::steady_clock::now();
  Tensor result = f();
  nitinol::synchronize();
  return {result, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
}

/// Returns false if eager and compiled disagree.
bool demo(const Options& options) {
  nitinol::manual_seed(1);
  const Tensor start = seeded(options.size);
  const auto compiled = nitinol::compile(solve, {.name = "solve"});
  const auto by = [&](const auto& f) {
    return timed([&] { return f(start, options.end, options.tolerance); });
  };
  fmt::print("{0} x {0} cells to time {1}, {2} thread{3}, {4}\n\n", options.size, options.end,
             options.threads, options.threads == 1 ? "" : "s", describe(nitinol::default_device()));
  const double first_s = by(compiled).second;
  static_cast<void>(by(compiled));  // finds its segments, and makes their Plans
  const auto [expected, eager_s] = by(solve);
  const auto [got, compiled_s] = by(compiled);
  fmt::print(
      "eager     {:8.3f} s\ncompiled  {:8.3f} s, {:.2f} times as fast (first call {:.3f} s)\n",
      eager_s, compiled_s, eager_s / compiled_s, first_s);
  fmt::print("\n{}\n", to_string(compiled.explain()));
  const bool is_same = same_bits(expected, got);
  fmt::print("mean of v {:.6f}, bit-identical: {}\n", mean(got[1]).item<float>(),
             is_same ? "yes" : "no");
  if (!options.json.empty()) {
    const nlohmann::json report = {{"eager_s", eager_s},
                                   {"compiled_s", compiled_s},
                                   {"first_call_s", first_s},
                                   {"bit_identical", is_same}};
    std::ofstream(options.json) << report.dump(2) << '\n';
  }
  return is_same;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CLI::App app(
        "Solves a reaction and diffusion with steps of adapted length, eagerly and compiled.");
    app.option_defaults()->always_capture_default();
    app.add_option("--size", options.size, "cells along each side")->check(examples::positive());
    app.add_option("--until", options.end, "time to solve to")->check(examples::positive());
    app.add_option("--tolerance", options.tolerance, "error of a step that is accepted")
        ->check(examples::positive());
    app.add_option("--threads", options.threads, "threads to compute with")
        ->check(examples::positive());
    app.add_option("--json", options.json, "write all figures to this file");
    examples::add_device(app);
    CLI11_PARSE(app, argc, argv);
    nitinol::set_num_threads(options.threads);
    return demo(options) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ode: %s\n", error.what());
    return 2;
  }
}
