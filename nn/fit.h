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
#include "nn/fit_optimizer.h"
#include "nn/fit_options.h"
#include "nn/fit_ranks.h"
#include "nn/module.h"
#include "nn/optimizer.h"
#include "nn/progress.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <optional>
#include <source_location>
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
  /// Rank 0 has what all have added to the loss, and the others nothing: for a file that it writes.
  void give_to_first(const Ranks& ranks);
  [[nodiscard]] std::vector<std::pair<std::string, double>> values(
      const std::vector<Metric>& metrics, const std::string& prefix, const Ranks& ranks) const;
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
///
/// Several processes (dist/group.h) train one model: all begin with what rank 0 has, gradients are
/// averaged, and losses and metrics are those of all ranks' samples, so that they all end alike.
/// Each has a loader of its part, DataLoaderOptions::shard; a pass ends for all where the first has
/// no batch any more. Buffers, such as those of batch norm, are averaged after each pass. Rank 0
/// writes the checkpoint, which all read, and the log, shows progress and calls what the options
/// have to be called; what after_epoch changes in the model and the optimizer is given to all.
///
/// The optimizer is an Optimizer, or a Sharded, whose group then trains: the file holds the state
/// of the whole one, so that training goes on with another number of ranks, or without Sharded.
template <class Model, class Loss, class O>
History fit(const Model& model, const Loss& loss, const O& optimizer, DataLoader& loader,
            const FitOptions& options = {},
            std::source_location place = std::source_location::current()) {
  fitting::check(options);
  const fitting::Ranks ranks(fitting::group_of(optimizer, options), place);
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
        (options.loss_scale ? (*options.loss_scale)(value) : value).backward();
        fitting::update(optimizer, learned, ranks, options);
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
  const auto all_state = [&](const auto& whole) {
    std::vector<NamedVariable> all;
    const auto add = [&](const std::string& name, const auto& part) {
      for (const NamedVariable& one : named_variables(part))
        all.push_back({name + "." + one.name, one.variable});
    };
    add("model", model), add("optimizer", whole), add("loader", loader), add("fit", state);
    if (options.validation != nullptr) add("validation", *options.validation);
    if (options.loss_scale) add("loss_scale", *options.loss_scale);
    return all;
  };
  const auto share = [&] {
    ranks.broadcast(named_variables(model));
    fitting::share(optimizer, ranks);
    if (options.loss_scale) ranks.broadcast(named_variables(*options.loss_scale));
    fitting::take_parameters(optimizer);
  };
  const bool has_file = !options.checkpoint.empty();
  const auto keep = [&] {
    state.sums.give_to_first(ranks);
    const auto& whole = fitting::whole_of(optimizer, ranks);
    if (ranks.is_first()) save(options.checkpoint, all_state(whole));
  };
  if (has_file && ranks.first_says(std::filesystem::exists(options.checkpoint))) {
    state.make_room(options.checkpoint, options);
    const auto& whole = fitting::whole_of(optimizer, ranks);
    ranks.load(state.random, [&] { load(options.checkpoint, all_state(whole)); });
    fitting::take(optimizer, whole);
    if (!ranks.is_first()) state.sums.clear();
  }
  share();
  const bool has_log = ranks.first_says(options.log != nullptr);
  const bool has_after_epoch = ranks.first_says(options.after_epoch != nullptr);
  MetricLog* const log = ranks.is_first() ? options.log : nullptr;
  bool is_begun = false;
  bool is_over = state.worse.get().item<int64_t>() < 0;
  while (!is_over && state.epoch.get().item<int64_t>() < options.epochs) {
    const int64_t number = state.epoch.get().item<int64_t>() + 1;
    train(model);
    std::optional<Progress> progress;
    if (ranks.is_first() && loader.has_size() && loader.size() > 0)
      progress.emplace(
          ProgressOptions{.name = fmt::format("epoch {}/{}", number, int64_t{options.epochs}),
                          .steps = loader.size(),
                          .items = loader.batch_size() * ranks.size(),
                          .unit = "samples",
                          .style = options.progress});
    for (fitting::Pass pass(loader, ranks); pass.goes_on(); pass.advance()) {
      const Batch& batch = pass.batch();
      if (!std::exchange(is_begun, true)) ranks.check_parts(batch);
      const int64_t step = state.step.get().item<int64_t>();
      if (options.schedule) optimizer.set_rate(options.schedule(step));
      const std::vector<Tensor> judged = run(train_step, batch);
      state.sums.add(judged, batch[0].shape()[0]);
      state.step.set(tensor(step + 1, i64));
      const Tensor logged = has_log ? ranks.mean(judged[0]) : judged[0];
      if (log != nullptr) {
        log->add("loss", logged, step + 1);
        log->add("learning rate", optimizer.rate().get(), step + 1);
      }
      if (progress)
        progress->step(progress->is_due() ? fmt::format("loss {:.4g}", judged[0].item<double>())
                                          : "");
      const bool is_due =
          options.checkpoint_steps > 0 && (step + 1) % options.checkpoint_steps == 0;
      if (has_file && is_due && !loader.is_between_passes()) {  // else the epoch ends here
        ranks.average_buffers(named_variables(model));          // all go on with what it holds
        keep();
      }
    }
    ranks.average_buffers(named_variables(model));
    Epoch epoch = {.number = number, .values = state.sums.values(options.metrics, "", ranks)};
    state.sums.clear();
    if (options.validation != nullptr) {
      eval(model);
      fitting::Sums sums;
      for (const Batch& batch : *options.validation)
        sums.add(run(test_step, batch), batch[0].shape()[0]);
      for (auto& value : sums.values(options.metrics, "validation ", ranks))
        epoch.values.push_back(value);
      train(model);
    }
    state.add(epoch);
    if (log != nullptr) fitting::add_to(*log, epoch, state.step.get().item<int64_t>());
    if (options.after_epoch && ranks.is_first()) options.after_epoch(epoch);
    if (has_after_epoch) share();
    if (options.early_stopping) is_over = state.ends(epoch, *options.early_stopping, learned);
    if (has_file) keep();
  }
  if (has_file) ranks.wait();  // it is there now
  if (options.early_stopping && options.early_stopping->restores_best) {
    state.restore_best(learned);
    fitting::take_parameters(optimizer);
  }
  if (options.explain && ranks.is_first()) options.explain(train_step.explain());
  return state.epochs(options);
}

}  // namespace nitinol::nn

#pragma GCC visibility pop
