// Timer: the clock of the benchmark, with the rules of the peers harness.
#pragma once

#include "bench/device_clock.h"
#include "bench/limits.h"
#include "bench/options.h"
#include "bench/row.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace nitinol::bench {

/// One way to do the work of a row.
struct Mode {
  std::string name;
  std::function<void()> call;
  int calls_to_settle = 0;  ///< how often to call it before the clock starts, if it is quick
  std::function<double()> check =
      nullptr;  ///< mean magnitude of the result, asked for after timing
};

/// Seconds on a clock that only goes forward.
[[nodiscard]] double now();
/// The middle one of the samples.
[[nodiscard]] double median_of(std::vector<double> samples);
/// Lets this process and the threads it will start run on its first `count` cores only.
void pin_to_cores(int count);

/// Times rows and prints each as a line of JSON on standard output.
class Timer {
 public:
  /// `clock`: of the device that computes, if it is not the host.
  Timer(const Options& options, const Limits& limits, const DeviceClock* clock)
      : options_(options), limits_(limits), clock_(clock) {}

  [[nodiscard]] bool wants(const std::string& row) const { return options_.wants(row); }
  /// For rows that take long on a host, which computes them only if they are asked for by name.
  [[nodiscard]] bool wants_large(const std::string& row) const {
    return clock_ != nullptr ? wants(row) : options_.names(row);
  }
  [[nodiscard]] bool is_quick() const { return options_.is_quick; }
  /// How many sets of inputs of so many bytes take turns, lest a device finds one in its cache.
  [[nodiscard]] std::size_t sets(double bytes) const;
  [[nodiscard]] int threads() const { return options_.threads.front(); }
  /// Times the modes of one row in turn: 7 samples of each, every sample at least 20 ms of calls.
  void time(const std::string& row, const Work& work, const std::vector<Mode>& modes,
            const std::string& notes = "");
  /// Prints a row that was timed elsewhere.
  void emit(const Row& row) const;

 private:
  const Options& options_;
  const Limits& limits_;
  const DeviceClock* clock_;
};

/// Held while a row is timed, if $PEERS_LOCK names a file: other users of the machine wait.
class Quiet {
 public:
  Quiet();
  ~Quiet();
  Quiet(const Quiet&) = delete;
  Quiet& operator=(const Quiet&) = delete;

 private:
  int file_ = -1;
};

}  // namespace nitinol::bench
