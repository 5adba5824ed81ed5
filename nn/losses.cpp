#include "nn/losses.h"

#include "core/error.h"
#include "eager/ops/ops.h"

#include <fmt/format.h>

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

/// Probabilities of the classes.
Tensor distribution(const Tensor& logits, const Tensor& targets, double smoothing) {
  const int64_t classes = logits.shape()[logits.rank() - 1];
  Tensor wanted = targets;
  if (is_integer(targets.dtype())) {
    Shape expected = logits.shape();
    expected.erase(expected.size() - 1);
    if (targets.shape() != expected) {
      throw Error(
          ErrorKind::shape,
          {.where = "cross_entropy",
           .what = fmt::format("targets {} for logits {}", describe(targets), describe(logits)),
           .expected = fmt::format("class numbers of shape {}", to_string(expected)),
           .got = to_string(targets.shape()),
           .fix = "One class number stands for the last axis of the logits."});
    }
    wanted = one_hot(targets, classes, logits.dtype());
  } else {
    check_same_shape("cross_entropy", logits, targets);
  }
  if (smoothing == 0) return wanted;
  return wanted * (1 - smoothing) + smoothing / static_cast<double>(classes);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  if (logits.rank() == 0) {
    throw Error(ErrorKind::shape, {.where = "cross_entropy",
                                   .what = "the logits are one number",
                                   .expected = "[..., classes]",
                                   .got = describe(logits),
                                   .fix = {}});
  }
  const Tensor wanted = distribution(logits, targets, options.label_smoothing);
  return -mean(sum(wanted * log_softmax(logits), {-1}));
}

Tensor mse_loss(const Tensor& x, const Tensor& y) {
  check_same_shape("mse_loss", x, y);
  return mean(square(x - y));
}

Tensor l1_loss(const Tensor& x, const Tensor& y) {
  check_same_shape("l1_loss", x, y);
  return mean(abs(x - y));
}

Tensor huber_loss(const Tensor& x, const Tensor& y, double delta) {
  check_same_shape("huber_loss", x, y);
  const Tensor d = abs(x - y);
  return mean(where(d <= delta, square(d) * 0.5, (d - 0.5 * delta) * delta));
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& targets) {
  check_same_shape("bce_with_logits", logits, targets);
  return mean(softplus(logits) - logits * targets);
}

}  // namespace nitinol::nn
