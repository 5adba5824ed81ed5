// Metrics: how good predictions are, in numbers that people read.
#pragma once

#include "core/integer.h"
#include "core/tensor.h"

#include <functional>
#include <string>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// A number of a whole pass over data that come batch by batch.
struct Metric {
  std::string name;
  /// Of one batch, a row for each sample: what `whole` needs. Runs inside a compiled step.
  std::function<Tensor(const Tensor& out, const Tensor& target)> part;
  /// Of the rows of all batches. Undefined: their mean.
  std::function<Tensor(const Tensor& rows)> whole = {};

  /// Of all data at once, a float64 number; NaN of none.
  [[nodiscard]] Tensor operator()(const Tensor& out, const Tensor& target) const {
    return of_rows(part(out, target));
  }
  [[nodiscard]] Tensor of_rows(const Tensor& rows) const;
};

/// The share of samples whose largest score, out[..., classes], is at the class target[...]. What
/// is not the first axis is averaged for a sample. Metrics throw Error(shape) for operands that do
/// not fit.
[[nodiscard]] Metric accuracy();
/// The share of samples whose class is among the k largest scores. Throws Error(value) unless k
/// >= 1.
[[nodiscard]] Metric top_k(Integer k);
/// The mean of |out - target|.
[[nodiscard]] Metric mean_absolute_error();
/// The area under the receiver operating characteristic: how probable it is that a sample with
/// target 1 has a greater score than one with target 0; ties count half (J. Hanley, B. McNeil,
/// Radiology 143 (1982)). out: one score a sample, [n] or [n, 1]. NaN unless both targets are
/// there.
[[nodiscard]] Metric area_under_curve();

}  // namespace nitinol::nn

#pragma GCC visibility pop
