// Plateau: a learning rate that falls when training gets no further.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol::nn {

struct PlateauOptions {
  double factor = 0.1;         ///< what the rate is multiplied by
  int64_t patience = 10;       ///< so many metrics may be no better before that
  double threshold = 1e-4;     ///< a better one is better by this share of the best
  bool is_absolute = false;    ///< by this much, not by a share
  bool is_maximizing = false;  ///< a greater metric is better
  int64_t cooldown = 0;        ///< so many metrics after a change do not count
  double last = 0;             ///< the least rate
};
/// A rate that falls when a metric, such as the loss of data that is not trained on, gets no
/// better, as in PyTorch: `optimizer.set_rate(plateau(loss.item<double>()))` after each epoch. It
/// has a state, which copies do not share; one thread calls it. Throws Error(value) for settings
/// that make no sense: the factor is below 1.
class Plateau {
 public:
  explicit Plateau(double rate, const PlateauOptions& options = {});
  /// Takes the next metric and gives the rate that follows from it. NaN is never better.
  double operator()(double metric);
  /// The present one.
  [[nodiscard]] double rate() const { return rate_; }

 private:
  double rate_;
  PlateauOptions options_;
  double best_;
  int64_t worse_ = 0;    ///< metrics in a row that were no better
  int64_t cooling_ = 0;  ///< metrics that will not count
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
