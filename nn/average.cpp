#include "nn/average.h"

#include "autograd/gradient.h"
#include "core/error.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <utility>

namespace nitinol::nn {

Average::Average(std::vector<Variable> parameters, const AverageOptions& options)
    : decay_(options.decay), parameters_(std::move(parameters)) {
  check_setting("Average", "decay", decay_, Interval::share);
  if (parameters_.empty()) {
    throw Error(ErrorKind::value, {.where = "Average",
                                   .what = "the list of parameters",
                                   .expected = "at least one",
                                   .got = "none",
                                   .fix = "Pass nn::parameters(model)."});
  }
  count_ = Variable(tensor(0.0, f64, parameters_[0].device()));
  for (const Variable& each : parameters_) {
    if (!is_floating(each.dtype())) {
      throw Error(ErrorKind::dtype, {.where = "Average",
                                     .what = "the average of a Variable",
                                     .expected = "a floating one",
                                     .got = describe(each.spec()),
                                     .fix = "Pass nn::parameters(model)."});
    }
    averages_.emplace_back(cast(each, promote(each.dtype(), f32)));
  }
}

void Average::update() const {
  const NoGradients scope;
  const Tensor before = count_;
  count_.set(before + 1.0);
  const Tensor weight =
      decay_ == 1 ? 1 / (before + 1.0) : full({}, 1 - decay_, f64, count_.device());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Variable& average = averages_[i];
    const DType dtype = average.dtype();
    const Tensor value = cast(parameters_[i], dtype);
    const Tensor moved = average + (value - average) * cast(weight, dtype);
    average.set(where(before > 0.0, moved, value));
  }
}

void Average::swap() const {
  const NoGradients scope;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor value = parameters_[i], average = averages_[i];
    parameters_[i].set(cast(average, value.dtype()));
    averages_[i].set(cast(value, average.dtype()));
  }
}

void Average::copy_to(const std::vector<Variable>& others) const {
  const NoGradients scope;
  if (others.size() != averages_.size()) {
    throw Error(ErrorKind::value, {.where = "Average::copy_to",
                                   .what = "the number of Variables",
                                   .expected = fmt::format("{}", averages_.size()),
                                   .got = fmt::format("{}", others.size()),
                                   .fix = "Pass the parameters of a model of the same type."});
  }
  for (std::size_t i = 0; i < others.size(); ++i)
    others[i].set(cast(averages_[i], others[i].dtype()));
}

}  // namespace nitinol::nn
