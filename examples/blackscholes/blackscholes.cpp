// Prices European options with the formula of Black and Scholes: a chain of about thirty
// elementwise operations, as people write them.
//
// Eagerly each operation reads and writes whole arrays; compiled, the chain is one kernel that
// reads three arrays and writes two. The last line says how far that is from what the memory can
// do.

#include "examples/blackscholes/bandwidth.h"
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
#include <utility>
#include <vector>

namespace {

using nitinol::Scalar;
using nitinol::Tensor;

/// Probability that a normal variable is below x.
Tensor normal_cdf(const Tensor& x) {
  return 0.5 * (1 + erf(x * std::sqrt(0.5)));
}

/// Prices of a call and a put on a share at price `spot`, to be bought or sold at `strike` after
/// `years`.
std::pair<Tensor, Tensor> price(const Tensor& spot, const Tensor& strike, const Tensor& years,
                                const Scalar& interest, const Scalar& volatility) {
  const Tensor deviation = volatility * sqrt(years);
  const Tensor drift = years * interest + 0.5 * square(deviation);
  const Tensor d1 = (log(spot / strike) + drift) / deviation;
  const Tensor d2 = d1 - deviation;
  const Tensor paid = strike * exp(-(years * interest));
  const Tensor call = spot * normal_cdf(d1) - paid * normal_cdf(d2);
  const Tensor put = paid * normal_cdf(-d2) - spot * normal_cdf(-d1);
  return {call, put};
}

struct Options {
  int64_t count = 4'000'000;
  int threads = 1;
  int repeats = 20;
  std::string json;
};

/// `count` numbers from `low` to `high`.
Tensor uniform(int64_t count, double low, double high) {
  return nitinol::rand({count}) * (high - low) + low;
}

/// Seconds of the fastest of `repeats` calls.
template <class Function>
double fastest(const Function& function, int repeats) {
  double best = 1e9;
  for (int i = 0; i < repeats; ++i) {
    const auto start = std::chrono::steady_clock::now();
    function();
    nitinol::synchronize();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const std::vector<float> p = a.to_vector<float>(), q = b.to_vector<float>();
  return p.size() == q.size() && std::memcmp(p.data(), q.data(), p.size() * sizeof p[0]) == 0;
}

/// Bytes per second of the memory that is computed in: of a triad on the host, of a copy elsewhere.
double bandwidth_of(const Tensor& x, const Options& options) {
  if (x.device() == nitinol::Device{}) return blackscholes::bandwidth(options.threads);
  const auto copy = [&] { return x * 1; };
  return 8 * static_cast<double>(options.count) / fastest(copy, options.repeats);
}

/// Prints one line of the table and returns it for the report. `bytes` is what the call has to
/// move.
nlohmann::json line(const std::string& name, double seconds, const Options& options, double bytes,
                    double limit) {
  const double count = static_cast<double>(options.count);
  fmt::print("{:<10} {:>10.3f} {:>12.1f} {:>10.1f} {:>9.0f}%\n", name, seconds * 1e3,
             count / seconds / 1e6, bytes / seconds / 1e9, 100 * bytes / seconds / limit);
  return {
      {"seconds", seconds}, {"options_per_s", count / seconds}, {"bytes_per_s", bytes / seconds}};
}

/// Returns false if eager and compiled disagree.
bool demo(const Options& options) {
  nitinol::manual_seed(1);
  const Tensor spot = uniform(options.count, 80, 120);
  const Tensor strike = uniform(options.count, 80, 120);
  const Tensor years = uniform(options.count, 0.1, 2);
  const double interest = 0.03, volatility = 0.2;
  const auto compiled = nitinol::compile(price, {.name = "price"});

  const auto run_eager = [&] { return price(spot, strike, years, interest, volatility); };
  const auto run_compiled = [&] { return compiled(spot, strike, years, interest, volatility); };
  run_compiled(), run_compiled();  // recorded twice; from the third call on it is compiled

  const double limit = bandwidth_of(spot, options);
  const double bytes = 20.0 * static_cast<double>(options.count);  // three floats in, two out
  fmt::print("{} options, {} thread{}, {}\n\n", options.count, options.threads,
             options.threads == 1 ? "" : "s", describe(nitinol::default_device()));
  fmt::print("{:<10} {:>10} {:>12} {:>10} {:>10}\n", "", "ms a call", "Moptions/s", "GB/s",
             "of memory");
  nlohmann::json report = {{"options", options.count}, {"threads", options.threads}};
  report["eager"] = line("eager", fastest(run_eager, options.repeats), options, bytes, limit);
  report["compiled"] =
      line("compiled", fastest(run_compiled, options.repeats), options, bytes, limit);
  report["bandwidth"] = line("memory", bytes / limit, options, bytes, limit);
  fmt::print("\n{}\n", to_string(compiled.explain()));

  const auto [eager_call, eager_put] = run_eager();
  const auto [call, put] = run_compiled();
  const bool is_same = same_bits(eager_call, call) && same_bits(eager_put, put);
  const double price_error =
      mean(abs(call - put - (spot - strike * exp(years * -interest)))).item<double>();
  report["bit_identical"] = is_same;
  report["parity_error"] = price_error;
  if (!options.json.empty()) std::ofstream(options.json) << report.dump(2) << '\n';
  fmt::print("call - put differs from spot - discounted strike by {:.1e} on average\n",
             price_error);
  fmt::print("bit-identical: {}\n", is_same ? "yes" : "no");
  return is_same;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Options options;
    CLI::App app("Prices options with the Black-Scholes formula, eagerly and compiled.");
    app.option_defaults()->always_capture_default();
    app.add_option("--count", options.count, "number of options")->check(examples::positive());
    app.add_option("--threads", options.threads, "threads to compute with")
        ->check(examples::positive());
    app.add_option("--repeats", options.repeats, "calls to time")->check(examples::positive());
    app.add_option("--json", options.json, "write all figures to this file");
    examples::add_device(app);
    CLI11_PARSE(app, argc, argv);
    nitinol::set_num_threads(options.threads);
    return demo(options) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "blackscholes: %s\n", error.what());
    return 2;
  }
}
