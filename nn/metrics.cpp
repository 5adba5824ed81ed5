#include "nn/metrics.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <limits>
#include <utility>

namespace nitinol::nn {
namespace {

[[noreturn]] void throw_predictions(const std::string& name, const Tensor& out,
                                    const Tensor& target, const char* expected) {
  throw Error(
      ErrorKind::shape,
      {.where = name,
       .what = fmt::format("predictions {} with targets {}", describe(out), describe(target)),
       .expected = expected,
       .got = to_string(out.shape()) + " and " + to_string(target.shape()),
       .fix = {}});
}

void check_scores(const std::string& name, const Tensor& out, const Tensor& target) {
  Shape samples = out.shape();
  if (out.rank() >= 2) samples.erase(samples.size() - 1);
  if (out.rank() < 2 || samples != target.shape() || !is_integer(target.dtype()))
    throw_predictions(name, out, target,
                      "scores [samples, …, classes], class numbers [samples, …]");
}

/// A number for each sample, float64.
Tensor of_samples(const Tensor& x) {
  Dims axes;
  for (int axis = 1; axis < x.rank(); ++axis) axes.push_back(axis);
  const Tensor wide = cast(x, f64);
  return axes.empty() ? wide : mean(wide, Axes(axes));
}

/// Of rows {score, target}.
Tensor area_of(const Tensor& rows) {
  const Tensor scores = reshape(rows.at({all_of_axis, 0}).get(), {-1});
  const Tensor is_positive = rows.at({all_of_axis, 1}).get() > 0;
  const Tensor sorted = sort(scores);
  // Equal scores share the mean of their ranks, from 1 on.
  const Tensor ranks =
      cast(searchsorted(sorted, scores, Side::left) + searchsorted(sorted, scores, Side::right) + 1,
           f64) *
      0.5;
  const Tensor positives = cast(count_nonzero(is_positive), f64);
  const Tensor negatives = static_cast<double>(scores.size()) - positives;
  const Tensor sum_of_ranks = sum(where(is_positive, ranks, 0.0));
  return (sum_of_ranks - positives * (positives + 1) * 0.5) / (positives * negatives);
}

}  // namespace

Tensor Metric::of_rows(const Tensor& rows) const {
  if (whole) return cast(whole(rows), f64);
  return rows.size() == 0 ? tensor(std::numeric_limits<double>::quiet_NaN(), f64)
                          : mean(cast(rows, f64));
}

Metric accuracy() {
  return {.name = "accuracy", .part = [](const Tensor& out, const Tensor& target) {
            check_scores("accuracy", out, target);
            return of_samples(argmax(out, -1) == target);
          }};
}

Metric top_k(Integer k) {
  check_at_least("top_k", "k", k, 1);
  std::string name = fmt::format("top {}", int64_t{k});
  return {.name = name, .part = [name, k](const Tensor& out, const Tensor& target) {
            check_scores(name, out, target);
            const Tensor best = topk(out, k).indices;
            return of_samples(any(best == unsqueeze(target, -1), {-1}));
          }};
}

Metric mean_absolute_error() {
  return {.name = "mean absolute error", .part = [](const Tensor& out, const Tensor& target) {
            if (out.shape() != target.shape() || out.rank() == 0)
              throw_predictions("mean_absolute_error", out, target, "the same shape, [samples, …]");
            return of_samples(abs(cast(out, f64) - cast(target, f64)));
          }};
}

Metric area_under_curve() {
  return {.name = "area under curve",
          .part =
              [](const Tensor& out, const Tensor& target) {
                const bool is_column = out.rank() == 2 && out.shape()[1] == 1;
                const Tensor scores = is_column ? squeeze(out, -1) : out;
                const bool is_target_column = target.rank() == 2 && target.shape()[1] == 1;
                const Tensor targets = is_target_column ? squeeze(target, -1) : target;
                if (scores.rank() != 1 || scores.shape() != targets.shape())
                  throw_predictions("area_under_curve", out, target,
                                    "one score a sample, [samples]");
                return stack({cast(scores, f64), cast(targets, f64)}, 1);
              },
          .whole = area_of};
}

}  // namespace nitinol::nn
