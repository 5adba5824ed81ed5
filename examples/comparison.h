// What the training examples measure: the time of a step, memory, compiling, and whether two runs
// ended with the same bits.
#pragma once

#include <nitinol/nitinol.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <numeric>
#include <span>
#include <string>
#include <vector>

namespace examples {

using nitinol::Tensor;

/// What a run of training took, and where it ended.
struct Run {
  double step_s = 0;     ///< median of all steps
  double fastest_s = 0;  ///< of them
  double total_s = 0;    ///< of all steps, with recording and compiling
  double compile_s = 0;  ///< as explain() says; 0 for an eager run
  /// The most in use during the last step, model and optimizer included. (The first steps of a
  /// compiled run, which are recorded, take what eager ones take and some more.)
  std::size_t peak_bytes = 0;
  float loss = 0;                  ///< of the last step
  std::vector<Tensor> state = {};  ///< the Variables of model and optimizer at the end
};

/// Times so many steps of a run. Make it before the model, whose memory it counts too.
class Meter {
 public:
  explicit Meter(int64_t steps)
      : steps_(steps), in_use_before_(nitinol::memory_statistics(device_).in_use) {}

  /// Calls a step of training; its loss.
  template <class Step, class... Arguments>
  Tensor time(const Step& step, const Arguments&... arguments) {
    if (std::ssize(times_) + 1 == steps_) nitinol::reset_peak_memory(device_);
    const auto start = Clock::now();
    loss_ = step(arguments...);
    nitinol::synchronize(device_);
    times_.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    return loss_;
  }

  /// The figures of all steps. `modules`: the model, the optimizer.
  template <class... M>
  [[nodiscard]] Run finish(const M&... modules) const {
    Run run;
    std::vector<double> sorted = times_;
    std::ranges::sort(sorted);
    run.step_s = sorted.at(sorted.size() / 2);
    run.fastest_s = sorted.front();
    run.total_s = std::accumulate(sorted.begin(), sorted.end(), 0.0);
    run.peak_bytes = nitinol::memory_statistics(device_).peak - in_use_before_;
    run.loss = loss_.item<float>();
    const auto add = [&run](const auto& module) {
      for (const auto& named : nitinol::nn::named_variables(module)) {
        run.state.push_back(named.variable.get());
      }
    };
    (add(modules), ...);
    return run;
  }

 private:
  using Clock = std::chrono::steady_clock;
  nitinol::Device device_ = nitinol::default_device();
  int64_t steps_;
  std::size_t in_use_before_;
  std::vector<double> times_;
  Tensor loss_;
};

/// Seconds that went into compiling a function's Plans.
inline double compile_seconds(const nitinol::Explanation& explanation) {
  double seconds = 0;
  for (const auto& signature : explanation.signatures) seconds += signature.compile_s;
  return seconds;
}

inline bool same_bits(const Tensor& a, const Tensor& b) {
  const auto equal = [](const auto& p, const auto& q) {
    return p.size() == q.size() && std::memcmp(p.data(), q.data(), p.size() * sizeof p[0]) == 0;
  };
  return a.dtype() == nitinol::f64 ? equal(a.to_vector<double>(), b.to_vector<double>())
                                   : equal(a.to_vector<float>(), b.to_vector<float>());
}

/// Whether both runs ended with the same parameters, running statistics and optimizer's averages,
/// bit for bit.
inline bool same_bits(const Run& a, const Run& b) {
  return std::ranges::equal(a.state, b.state,
                            [](const Tensor& x, const Tensor& y) { return same_bits(x, y); });
}

inline std::string megabytes(std::size_t bytes) {
  return fmt::format("{:.1f} MB", static_cast<double>(bytes) * 1e-6);
}

inline std::string duration(double seconds) {
  return seconds < 1e-3 ? fmt::format("{:.1f} us", seconds * 1e6)
                        : fmt::format("{:.2f} ms", seconds * 1e3);
}

/// A table of two lines, and what follows from them.
inline void print_comparison(const Run& eager, const Run& compiled) {
  const auto line = [](const char* name, const Run& run, const std::string& compiling) {
    fmt::print("{:<9} {:>12} {:>12} {:>12} {:>12}\n", name, duration(run.step_s),
               fmt::format("{:.2f} s", run.total_s), megabytes(run.peak_bytes), compiling);
  };
  fmt::print("\n{:<9} {:>12} {:>12} {:>12} {:>12}\n", "", "a step", "all steps", "peak memory",
             "compiling");
  line("eager", eager, "");
  line("compiled", compiled, duration(compiled.compile_s));
  fmt::print("\ncompiled is {:.2f} times as fast\n", eager.step_s / compiled.step_s);
  fmt::print("bit-identical: {}\n", same_bits(eager, compiled) ? "yes" : "no");
}

inline nlohmann::json to_json(const Run& run) {
  return {{"step_s", run.step_s},       {"fastest_s", run.fastest_s},   {"total_s", run.total_s},
          {"compile_s", run.compile_s}, {"peak_bytes", run.peak_bytes}, {"loss", run.loss}};
}

/// What --json writes of a comparison.
inline nlohmann::json to_json(const Run& eager, const Run& compiled) {
  return {{"eager", to_json(eager)},
          {"compiled", to_json(compiled)},
          {"ratio", eager.step_s / compiled.step_s},
          {"bit_identical", same_bits(eager, compiled)}};
}

}  // namespace examples
