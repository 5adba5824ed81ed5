#include "nn/losses.h"

#include "core/error.h"
#include "eager/ops/likelihood.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"
#include "nn/widened.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace nitinol::nn {
namespace {

void check_same_shape(const char* where, const Tensor& x, const Tensor& y) {
  if (x.shape() == y.shape()) return;
  throw Error(ErrorKind::shape,
              {.where = where,
               .what = fmt::format("{} against {}", describe(x), describe(y)),
               .expected = "one shape",
               .got = "two",
               .fix = "Broadcasting a loss is nearly always a mistake; reshape one of them."});
}

int64_t class_count(const Tensor& logits) {
  return logits.shape()[logits.rank() - 1];
}

void check_class_shape(const Tensor& logits, const Tensor& targets) {
  Shape expected = logits.shape();
  expected.erase(expected.size() - 1);
  if (targets.shape() == expected) return;
  throw Error(ErrorKind::shape,
              {.where = "cross_entropy",
               .what = fmt::format("targets {} for logits {}", describe(targets), describe(logits)),
               .expected = fmt::format("class numbers of shape {}", to_string(expected)),
               .got = to_string(targets.shape()),
               .fix = "One class number stands for the last axis of the logits."});
}

/// Targets that are no integers are a probability for each class.
void check_distribution(const Tensor& logits, const Tensor& targets) {
  if (targets.shape() == logits.shape()) return;
  Shape classes_of = logits.shape();
  classes_of.erase(classes_of.size() - 1);
  const bool looks_like_classes = targets.shape() == classes_of;
  throw Error(looks_like_classes ? ErrorKind::dtype : ErrorKind::shape,
              {.where = "cross_entropy",
               .what = fmt::format("targets {} for logits {}", describe(targets), describe(logits)),
               .expected = fmt::format("class numbers of an integer dtype and shape {}, or "
                                       "probabilities of shape {}",
                                       to_string(classes_of), to_string(logits.shape())),
               .got = describe(targets),
               .fix = looks_like_classes ? "Cast class numbers: targets.to(i64)."
                                         : "Reshape the targets, or check what was passed."});
}

/// In a handler: names the first target that is neither a class nor left out, and where it is; if
/// there is none, what is handled goes on (memory can run out anywhere).
[[noreturn]] void throw_no_class(const Tensor& targets, int64_t classes, int64_t ignored) {
  const std::vector<int64_t> list = cast(targets, i64).to_vector<int64_t>({});
  const auto is_wrong = [=](int64_t target) {
    return target != ignored && (target < 0 || target >= classes);
  };
  const auto found = std::ranges::find_if(list, is_wrong);
  if (found == list.end()) throw;
  int64_t rest = found - list.begin();
  Dims position = Dims::filled(targets.rank(), 0);
  for (int i = targets.rank() - 1; i >= 0; --i) {
    position[i] = rest % targets.shape()[i];
    rest /= targets.shape()[i];
  }
  throw Error(
      ErrorKind::value,
      {.where = "cross_entropy",
       .what = fmt::format("target {} at {} for {} classes", *found, to_string(position), classes),
       .expected = fmt::format("0 <= target < {}, or ignore_index = {}", classes, ignored),
       .got = fmt::format("{}", *found),
       .fix = "Check the labels and the width of the last layer; mark padding with "
              "ignore_index."});
}

/// 1 where there is a class, 0 where the target is left out. Fails, in compiled calls too, where
/// there is neither.
Tensor class_weights(const Tensor& targets, int64_t classes, int64_t ignored, DType dtype) {
  const Tensor counts = targets != ignored;
  const Tensor considered = where(counts, targets, 0);
  try {
    check_nonzero(clamp(considered, 0, classes - 1) == considered);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::value) throw;
    throw_no_class(targets, classes, ignored);
  }
  return cast(counts, dtype);
}

Tensor mean_as(const Tensor& losses, const Tensor& like) {
  const Tensor result = mean(losses);
  return is_floating(like.dtype()) ? cast(result, like.dtype()) : result;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  check_setting("cross_entropy", "label_smoothing", options.label_smoothing, Interval::share);
  if (logits.rank() == 0) {
    throw Error(ErrorKind::shape, {.where = "cross_entropy",
                                   .what = "the logits are one number",
                                   .expected = "[..., classes]",
                                   .got = describe(logits),
                                   .fix = {}});
  }
  const Tensor x = widened(logits);
  if (!is_integer(targets.dtype())) {
    check_distribution(logits, targets);
    const Tensor wanted = smoothed(targets, options.label_smoothing);
    return mean_as(-sum(wanted * log_softmax(x), {-1}), logits);
  }
  check_class_shape(logits, targets);
  const Tensor labels = cast(targets, i64);
  const Tensor weights =
      class_weights(labels, class_count(logits), options.ignore_index, x.dtype());
  const Tensor total = sum(weights * log_likelihood(x, labels, options.label_smoothing));
  const Tensor count = sum(weights);
  // The mean of nothing is not a number, but no gradient flows.
  const Tensor mean = where(count > 0, -total / maximum(count, 1), std::nan(""));
  return cast(mean, logits.dtype());
}

Tensor mse_loss(const Tensor& x, const Tensor& y) {
  check_same_shape("mse_loss", x, y);
  return mean_as(square(widened(x) - widened(y)), x);
}

Tensor l1_loss(const Tensor& x, const Tensor& y) {
  check_same_shape("l1_loss", x, y);
  return mean_as(abs(widened(x) - widened(y)), x);
}

Tensor huber_loss(const Tensor& x, const Tensor& y, double delta) {
  check_setting("huber_loss", "delta", delta, Interval::not_negative);
  check_same_shape("huber_loss", x, y);
  const Tensor d = abs(widened(x) - widened(y));
  return mean_as(where(d <= delta, square(d) * 0.5, (d - 0.5 * delta) * delta), x);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& targets) {
  check_same_shape("bce_with_logits", logits, targets);
  const Tensor x = widened(logits);
  return mean_as(softplus(x) - x * widened(targets), logits);
}

}  // namespace nitinol::nn
