#include "nn/fit.h"

#include "core/error.h"
#include "io/safetensors.h"
#include "nn/checks.h"

#include <algorithm>

namespace nitinol::nn {
namespace {

constexpr const char* best_prefix = "fit.best_parameters.";

int64_t held_number(const Variable& variable) {
  return variable.get().item<int64_t>();
}

void hold_number(const Variable& variable, int64_t value) {
  variable.set(tensor(value, i64));
}

}  // namespace

double Epoch::value(const std::string& name) const {
  std::string names;
  for (const auto& [each, found] : values) {
    if (each == name) return found;
    names += (names.empty() ? "" : ", ") + each;
  }
  throw Error(ErrorKind::value, {.where = "Epoch::value",
                                 .what = fmt::format("the value \"{}\"", name),
                                 .expected = "one of: " + names,
                                 .got = name,
                                 .fix = "Metrics have their own names; those of the validation "
                                        "begin with \"validation \"."});
}

std::string to_string(const Epoch& epoch) {
  std::string text = fmt::format("epoch {}:", epoch.number);
  for (std::size_t i = 0; i < epoch.values.size(); ++i)
    text += fmt::format("{}{} {:.4g}", i == 0 ? " " : ", ", epoch.values[i].first,
                        epoch.values[i].second);
  return text;
}

namespace fitting {

void Sums::add(const std::vector<Tensor>& of_batch, int64_t count) {
  const NoGradients scope;
  const auto weight = static_cast<double>(count);
  loss.set(loss + cast(of_batch[0], f64) * weight);
  samples.set(samples + weight);
  rows.resize(of_batch.size() - 1);
  for (std::size_t i = 0; i < rows.size(); ++i) rows[i].push_back(of_batch[i + 1]);
}

void Sums::clear() {
  loss.set(tensor(0.0, f64));
  samples.set(tensor(0.0, f64));
  rows.clear();
}

void Sums::give_to_first(const Ranks& ranks) {
  if (!ranks.are_several()) return;
  for (const Variable* each : {&loss, &samples}) {
    const Tensor all = ranks.sum(each->get());
    each->set(ranks.is_first() ? all : tensor(0.0, f64));
  }
}

std::vector<std::pair<std::string, double>> Sums::values(const std::vector<Metric>& metrics,
                                                         const std::string& prefix,
                                                         const Ranks& ranks) const {
  std::vector<std::pair<std::string, double>> all;
  all.emplace_back(prefix + "loss", (ranks.sum(loss) / ranks.sum(samples)).item<double>());
  for (std::size_t i = 0; i < metrics.size(); ++i) {
    const Tensor whole = ranks.rows(i < rows.size() ? rows[i] : std::vector<Tensor>());
    all.emplace_back(prefix + metrics[i].name,
                     whole.is_defined() ? metrics[i].of_rows(whole).item<double>() : std::nan(""));
  }
  return all;
}

void State::add(const Epoch& now) {
  std::vector<double> numbers;
  for (const auto& [name, number] : now.values) numbers.push_back(number);
  const auto count = static_cast<int64_t>(numbers.size());
  const Tensor row = reshape(from_span<double>(numbers, {count}), {1, count});
  const Tensor before = history;
  history = Variable(before.size() == 0 ? row : concat({before, row}));
  hold_number(epoch, now.number);
}

bool State::ends(const Epoch& now, const EarlyStopping& stopping,
                 const std::vector<Variable>& model) {
  const double value = now.value(stopping.monitor);
  const double least = best.get().item<double>();
  const double gain = stopping.is_maximizing ? value - least : least - value;
  if (gain > stopping.threshold || (std::isnan(least) && !std::isnan(value))) {
    best.set(tensor(value, f64));
    hold_number(worse, 0);
    if (!stopping.restores_best) return false;
    for (std::size_t i = best_parameters.size(); i < model.size(); ++i)
      best_parameters.push_back({fmt::format("{}", i), Variable(model[i].get())});
    for (std::size_t i = 0; i < model.size(); ++i) best_parameters[i].variable.set(model[i]);
    return false;
  }
  const int64_t count = held_number(worse) + 1;
  const bool is_over = count >= stopping.patience;
  hold_number(worse, is_over ? -1 : count);
  return is_over;
}

void State::restore_best(const std::vector<Variable>& model) const {
  for (std::size_t i = 0; i < best_parameters.size(); ++i)
    model.at(i).set(best_parameters[i].variable);
}

History State::epochs(const FitOptions& options) const {
  std::vector<std::string> names = {"loss"};
  for (const Metric& metric : options.metrics) names.push_back(metric.name);
  if (options.validation != nullptr) {
    const std::size_t count = names.size();
    for (std::size_t i = 0; i < count; ++i) names.push_back("validation " + names[i]);
  }
  const Tensor table = history;
  const std::vector<double> numbers = table.to_vector<double>();
  History all;
  for (int64_t i = 0; i < table.shape()[0]; ++i) {
    Epoch one = {.number = i + 1, .values = {}};
    for (std::size_t k = 0; k < names.size(); ++k)
      one.values.emplace_back(names[k], numbers[static_cast<std::size_t>(i) * names.size() + k]);
    all.push_back(std::move(one));
  }
  return all;
}

void State::make_room(const std::filesystem::path& path, const FitOptions& options) {
  const std::size_t columns =
      (1 + options.metrics.size()) * (options.validation != nullptr ? 2 : 1);
  for (const auto& [name, tensor] : load_safetensors(path).tensors) {
    if (name == "fit.history" && tensor.rank() == 2 && tensor.dtype() == f64) {
      if (tensor.size() > 0 && tensor.shape()[1] != static_cast<int64_t>(columns)) {
        throw Error(ErrorKind::value,
                    {.where = "fit",
                     .what = fmt::format("the checkpoint {}", path.string()),
                     .expected = fmt::format("{} values of each epoch", columns),
                     .got = fmt::format("{}", tensor.shape()[1]),
                     .fix = "Go on with the metrics and the validation that it began with."});
      }
      history = Variable(zeros(tensor.shape(), f64));
    } else if (name.starts_with(best_prefix)) {
      best_parameters.push_back({name.substr(std::string_view(best_prefix).size()),
                                 Variable(zeros(tensor.shape(), tensor.dtype()))});
    }
  }
  std::ranges::sort(best_parameters, {}, [](const NamedVariable& one) {
    return std::pair(one.name.size(), one.name);  // as numbers
  });
}

void add_to(MetricLog& log, const Epoch& epoch, int64_t step) {
  for (const auto& [name, value] : epoch.values) log.add("epoch/" + name, value, step);
  log.flush();
}

void check(const FitOptions& options) {
  check_at_least("fit", "epochs", options.epochs, 0);
  check_at_least("fit", "checkpoint_steps", options.checkpoint_steps, 0);
  if (options.early_stopping) {
    check_at_least("fit", "early_stopping.patience", options.early_stopping->patience, 1);
    check_setting("fit", "early_stopping.threshold", options.early_stopping->threshold,
                  Interval::not_negative);
    Epoch values;  // of which the monitored one must be
    Sums sums;
    values.values = sums.values(options.metrics, "", {});
    if (options.validation != nullptr) {
      for (auto& value : sums.values(options.metrics, "validation ", {}))
        values.values.push_back(std::move(value));
    }
    static_cast<void>(values.value(options.early_stopping->monitor));
  }
}

void check_pair(const Batch& batch) {
  if (batch.size() == 2 && batch[0].rank() > 0) return;
  throw Error(ErrorKind::value, {.where = "fit",
                                 .what = "a batch of the loader",
                                 .expected = "two tensors: what the model gets, and the target",
                                 .got = fmt::format("{}", batch.size()),
                                 .fix = "Write the loop yourself: nn/fit.h has it."});
}

}  // namespace fitting
}  // namespace nitinol::nn
