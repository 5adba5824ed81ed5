// What fit() is told, and what it returns.
#pragma once

#include "core/dtype.h"
#include "core/integer.h"
#include "dist/group.h"
#include "jit/explain.h"
#include "nn/data_loader.h"
#include "nn/loss_scale.h"
#include "nn/metric_log.h"
#include "nn/metrics.h"
#include "nn/progress.h"
#include "nn/schedules.h"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// What came of one epoch: "loss", the metrics, and the same of the validation, "validation loss".
struct Epoch {
  int64_t number = 0;  ///< from 1 on
  std::vector<std::pair<std::string, double>> values;
  /// Throws Error(value) for a name that is not there.
  [[nodiscard]] double value(const std::string& name) const;
};
/// "epoch 3: loss 0.2461, accuracy 0.913".
[[nodiscard]] std::string to_string(const Epoch& epoch);
using History = std::vector<Epoch>;

/// Ends training when a value gets no better.
struct EarlyStopping {
  std::string monitor = "validation loss";
  Integer patience = 3;        ///< so many epochs may be no better
  double threshold = 0;        ///< a better one is better by more than this
  bool is_maximizing = false;  ///< a greater one is better
  bool restores_best = true;   ///< the parameters are those of the best epoch at the end
};

struct FitOptions {
  Integer epochs = 1;
  DataLoader* validation = nullptr;  ///< looked at after each epoch, in eval mode
  std::vector<Metric> metrics = {};
  std::optional<EarlyStopping> early_stopping = {};
  /// A file that keeps all state, the loaders' places included: written after each epoch and, if
  /// `checkpoint_steps` is not 0, after so many steps. If it is there, training goes on from it.
  std::filesystem::path checkpoint = {};
  Integer checkpoint_steps = 0;
  /// Gets "loss" and "learning rate" of each step, by how many were made, and what comes of each
  /// epoch as "epoch/loss" and so on; it is flushed then.
  MetricLog* log = nullptr;
  std::function<void(const Epoch&)> after_epoch = {};    ///< called after each
  std::function<void(const Explanation&)> explain = {};  ///< called at the end: of the steps
  Schedule schedule = {};                                ///< the rate of each step, from 0 on
  DType autocast = f32;                      ///< of the model and its loss (nn/autocast.h)
  std::optional<LossScale> loss_scale = {};  ///< for f16
  std::optional<double> largest_norm = {};   ///< clip_gradient_norm()
  bool is_compiled = true;                   ///< off: to look at what a step does
  ProgressStyle progress = ProgressStyle::on_terminal;
  /// The ranks that train together; if none is given, world() in a program that has called
  /// dist::init() or world(), and this process alone in others. All give the same options, but that
  /// what is called or written is rank 0's.
  std::optional<dist::Group> group = {};
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
