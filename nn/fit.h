// fit(): the usual loop over epochs and batches, for models of one input and one target.
//
//     const auto loss = [](const Tensor& out, const Tensor& y) { return nn::cross_entropy(out, y);
//     }; const nn::History history =
//         nn::fit(model, loss, nn::Adam(nn::parameters(model)), loader,
//                 {.epochs = 10, .validation = &held_out, .metrics = {nn::accuracy()}});
//
// It is made of public functions alone. Who needs another loop copies it from here.
#pragma once

#include "autograd/gradient.h"
#include "eager/ops/ops.h"
#include "jit/compile.h"
#include "nn/autocast.h"
#include "nn/checkpoint.h"
#include "nn/data_loader.h"
#include "nn/fit_options.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "nn/progress.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

namespace fitting {

/// Sums of an epoch so far.
struct Sums {
  Variable loss{tensor(0.0, f64)}, samples{tensor(0.0, f64)};  ///< of the losses, and how many
  std::vector<std::vector<Tensor>> rows;                       ///< of each metric, of each batch

  void add(const std::vector<Tensor>& of_batch, int64_t count);
  void clear();
  [[nodiscard]] std::vector<std::pair<std::string, double>> values(
      const std::vector<Metric>& metrics, const std::string& prefix) const;
};

/// What is kept beside the model's and the optimizer's state. (nn/fit.cpp)
struct State {
  Variable epoch{tensor(int64_t{0}, i64)}, step{tensor(int64_t{0}, i64)};
  Variable best{tensor(std::nan(""), f64)}, worse{tensor(int64_t{0}, i64)};
  Variable history{zeros({0, 0}, f64)};  ///< [epochs, values]
  Variable random = default_generator().state();
  Sums sums;
  std::vector<NamedVariable> best_parameters = {};

  void add(const Epoch& epoch);
  /// Whether training ends here.
  bool ends(const Epoch& epoch, const EarlyStopping& stopping, const std::vector<Variable>& model);
  void restore_best(const std::vector<Variable>& model) const;
  [[nodiscard]] History epochs(const FitOptions& options) const;
  /// For what a file holds: its history, and the best parameters.
  void make_room(const std::filesystem::path& path, const FitOptions& options);
  template <class V>
  void fields(V&& visit) const {
    visit("epoch", epoch), visit("step", step), visit("best", best), visit("worse", worse);
    visit("history", history), visit("random", random), visit("loss", sums.loss);
    visit("samples", sums.samples), visit("best_parameters", best_parameters);
  }
};

/// Writes the epoch's values.
void add_to(MetricLog& log, const Epoch& epoch, int64_t step);
void check(const FitOptions& options);
/// Throws Error(value) for a batch that is no pair.
void check_pair(const Batch& batch);

}  // namespace fitting

/// Trains `model`, which is called with the first tensor of a batch, by the gradients of
/// loss(model(x), y). The step is compiled. Returns what came of each epoch. What metrics add to
/// the first epoch after a checkpoint within it counts from there.
///
/// Throws Error(value) for options that make no sense and batches that are no pairs, what the
/// checkpoint's load() does, and what the model, the loss and the loader throw.
template <class Model, class Loss>
History fit(const Model& model, const Loss& loss, const Optimizer& optimizer, DataLoader& loader,
            const FitOptions& options = {}) {
  fitting::check(options);
  const std::vector<Variable> learned = parameters(model);
  const auto judge = [&](const Tensor& value, const Tensor& out, const Tensor& y) {
    std::vector<Tensor> judged = {stop_gradient(value)};
    for (const Metric& metric : options.metrics)
      judged.push_back(metric.part(stop_gradient(out), y));
    return judged;
  };
  const auto forward = [&](const Tensor& x, const Tensor& y) {
    const Autocast scope(options.autocast);
    const Tensor out = model(x);
    return std::pair(out, Tensor(loss(out, y)));
  };
  const auto train_step = compile(
      [&](const Tensor& x, const Tensor& y) {
        optimizer.zero_grad();
        const auto [out, value] = forward(x, y);
        std::optional<Tensor> is_finite;
        if (options.loss_scale) {
          (*options.loss_scale)(value).backward();
          is_finite = options.loss_scale->unscale(learned);
        } else {
          value.backward();
        }
        if (options.largest_norm) clip_gradient_norm(learned, *options.largest_norm);
        is_finite ? optimizer.step(*is_finite) : optimizer.step();
        return judge(value, out, y);
      },
      {.name = "fit: step"});
  const auto test_step = compile(
      [&](const Tensor& x, const Tensor& y) {
        const NoGradients scope;
        const auto [out, value] = forward(x, y);
        return judge(value, out, y);
      },
      {.name = "fit: validation"});
  const auto run = [&](const auto& step, const Batch& batch) {
    fitting::check_pair(batch);
    return options.is_compiled ? step(batch[0], batch[1]) : step.eager(batch[0], batch[1]);
  };

  fitting::State state;
  const auto all_state = [&] {
    std::vector<NamedVariable> all;
    const auto add = [&](const std::string& name, const auto& part) {
      for (const NamedVariable& one : named_variables(part))
        all.push_back({name + "." + one.name, one.variable});
    };
    add("model", model), add("optimizer", optimizer), add("loader", loader), add("fit", state);
    if (options.validation != nullptr) add("validation", *options.validation);
    if (options.loss_scale) add("loss_scale", *options.loss_scale);
    return all;
  };
  const bool has_file = !options.checkpoint.empty();
  if (has_file && std::filesystem::exists(options.checkpoint)) {
    state.make_room(options.checkpoint, options);
    load(options.checkpoint, all_state());
  }
  bool is_over = state.worse.get().item<int64_t>() < 0;
  while (!is_over && state.epoch.get().item<int64_t>() < options.epochs) {
    const int64_t number = state.epoch.get().item<int64_t>() + 1;
    train(model);
    std::optional<Progress> progress;
    if (loader.has_size() && loader.size() > 0)
      progress.emplace(
          ProgressOptions{.name = fmt::format("epoch {}/{}", number, int64_t{options.epochs}),
                          .steps = loader.size(),
                          .items = loader.batch_size(),
                          .unit = "samples",
                          .style = options.progress});
    for (const Batch& batch : loader) {
      const int64_t step = state.step.get().item<int64_t>();
      if (options.schedule) optimizer.set_rate(options.schedule(step));
      const std::vector<Tensor> judged = run(train_step, batch);
      state.sums.add(judged, batch[0].shape()[0]);
      state.step.set(tensor(step + 1, i64));
      if (options.log != nullptr) {
        options.log->add("loss", judged[0], step + 1);
        options.log->add("learning rate", optimizer.rate().get(), step + 1);
      }
      if (progress)
        progress->step(progress->is_due() ? fmt::format("loss {:.4g}", judged[0].item<double>())
                                          : "");
      const bool is_due =
          options.checkpoint_steps > 0 && (step + 1) % options.checkpoint_steps == 0;
      if (has_file && is_due && !loader.is_between_passes())  // else the epoch ends here
        save(options.checkpoint, all_state());
    }
    Epoch epoch = {.number = number, .values = state.sums.values(options.metrics, "")};
    state.sums.clear();
    if (options.validation != nullptr) {
      eval(model);
      fitting::Sums sums;
      for (const Batch& batch : *options.validation)
        sums.add(run(test_step, batch), batch[0].shape()[0]);
      for (auto& value : sums.values(options.metrics, "validation ")) epoch.values.push_back(value);
      train(model);
    }
    state.add(epoch);
    if (options.log != nullptr)
      fitting::add_to(*options.log, epoch, state.step.get().item<int64_t>());
    if (options.after_epoch) options.after_epoch(epoch);
    if (options.early_stopping) is_over = state.ends(epoch, *options.early_stopping, learned);
    if (has_file) save(options.checkpoint, all_state());
  }
  if (options.early_stopping && options.early_stopping->restores_best) state.restore_best(learned);
  if (options.explain) options.explain(train_step.explain());
  return state.epochs(options);
}

}  // namespace nitinol::nn

#pragma GCC visibility pop
