#include "nn/losses.h"

#include "core/autocast.h"
#include "core/error.h"
#include "core/place.h"
#include "eager/ops/likelihood.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
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

void check_classes(const char* where, const Tensor& logits) {
  if (logits.rank() > 0) return;
  throw Error(ErrorKind::shape, {.where = where,
                                 .what = "the logits are one number",
                                 .expected = "[..., classes]",
                                 .got = describe(logits),
                                 .fix = {}});
}

void check_class_shape(const char* where, const Tensor& logits, const Tensor& targets) {
  Shape expected = logits.shape();
  expected.erase(expected.size() - 1);
  if (targets.shape() == expected) return;
  throw Error(ErrorKind::shape,
              {.where = where,
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
[[noreturn]] void throw_no_class(const char* where, const Tensor& targets, int64_t classes,
                                 int64_t ignored) {
  const std::vector<int64_t> list = cast(targets, i64).to_vector<int64_t>({});
  const auto is_wrong = [=](int64_t target) {
    return target != ignored && (target < 0 || target >= classes);
  };
  const auto found = std::ranges::find_if(list, is_wrong);
  if (found == list.end()) throw;
  const Dims position = indices_at(targets.shape(), found - list.begin());
  throw Error(
      ErrorKind::value,
      {.where = where,
       .what = fmt::format("target {} at {} for {} classes", *found, to_string(position), classes),
       .expected = fmt::format("0 <= target < {}, or ignore_index = {}", classes, ignored),
       .got = fmt::format("{}", *found),
       .fix = "Check the labels and the width of the last layer; mark padding with "
              "ignore_index."});
}

/// The targets, these with class 0 where one is left out, and how much each counts: 0 if it is left
/// out, else 1, or its class' weight.
struct Classes {
  Tensor labels, considered, counts;
};
/// Fails, in compiled calls too, where a target is neither a class nor left out.
Classes classes_of(const char* where, const Tensor& logits, const Tensor& targets, int64_t ignored,
                   const std::optional<Tensor>& weights, DType dtype) {
  check_class_shape(where, logits, targets);
  const int64_t classes = class_count(logits);
  if (weights && weights->shape() != Shape{classes}) {
    throw Error(ErrorKind::shape, {.where = where,
                                   .what = "weights " + describe(*weights),
                                   .expected = fmt::format("one for each of {} classes", classes),
                                   .got = to_string(weights->shape()),
                                   .fix = {}});
  }
  const Tensor labels = cast(targets, i64), is_class = labels != ignored;
  const Tensor considered = nitinol::where(is_class, labels, 0);
  check_elements(
      clamp(considered, 0, classes - 1) == considered,
      {where, "a target that is no class", "0 <= target < the number of classes, or ignore_index",
       "Check the labels and the width of the last layer; mark padding with "
       "ignore_index."},
      [&]() -> Error { throw_no_class(where, labels, classes, ignored); });
  const Tensor counts = cast(is_class, dtype);
  return {labels, considered, weights ? counts * cast(take(*weights, considered), dtype) : counts};
}

/// A loss in the dtype of what it is of; autocast leaves it in float32.
Tensor in_dtype_of(const Tensor& like, const Tensor& loss) {
  return is_autocasting() ? loss : narrowed(loss, like);
}

Tensor reduced(const Tensor& losses, Reduction reduction, const Tensor& like) {
  const Tensor result = reduction == Reduction::none  ? losses
                        : reduction == Reduction::sum ? sum(losses)
                                                      : mean(losses);
  return in_dtype_of(like, result);
}

/// Of losses that count as often as `counts` says. The mean of nothing is not a number, but no
/// gradient flows.
Tensor reduced(const Tensor& losses, const Tensor& counts, Reduction reduction,
               const Tensor& like) {
  if (reduction != Reduction::mean) return reduced(losses, reduction, like);
  const Tensor count = sum(counts);
  return in_dtype_of(
      like,
      nitinol::where(count > 0, sum(losses) / nitinol::where(count > 0, count, 1), std::nan("")));
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                     const CrossEntropyOptions& options) {
  constexpr const char* name = "cross_entropy";
  const OnePlaceScope place;
  check_setting(name, "label_smoothing", options.label_smoothing, Interval::share);
  check_classes(name, logits);
  const Tensor x = widened(logits);
  const double smoothing = options.label_smoothing;
  const auto weighted = [&](const Tensor& losses) {
    return options.weights ? losses * cast(*options.weights, x.dtype()) : losses;
  };
  if (!is_integer(targets.dtype())) {
    check_distribution(logits, targets);
    const Tensor wanted = smoothed(targets, smoothing);
    return 0 - reduced(sum(weighted(wanted * log_softmax(x)), {-1}), options.reduction, logits);
  }
  const Classes classes =
      classes_of(name, logits, targets, options.ignore_index, options.weights, x.dtype());
  const auto likelihood = [&](double share) {
    return classes.counts * log_likelihood(x, classes.labels, share);
  };
  if (!options.weights || smoothing == 0)
    return 0 - reduced(likelihood(smoothing), classes.counts, options.reduction, logits);
  // What is spread counts by the weights of the classes that it goes to.
  const Tensor is_class = cast(classes.labels != options.ignore_index, x.dtype());
  const double each = smoothing / static_cast<double>(class_count(logits));
  const Tensor spread = is_class * sum(weighted(log_softmax(x)), {-1}) * each;
  return 0 - reduced(likelihood(0) * (1 - smoothing) + spread, classes.counts, options.reduction,
                     logits);
}

Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets, const NllOptions& options) {
  check_classes("nll_loss", log_probabilities);
  if (!is_integer(targets.dtype())) {
    throw Error(ErrorKind::dtype, {.where = "nll_loss",
                                   .what = "targets " + describe(targets),
                                   .expected = "class numbers of an integer dtype",
                                   .got = std::string(name_of(targets.dtype())),
                                   .fix = "Cast class numbers: targets.to(i64)."});
  }
  const Tensor x = widened(log_probabilities);
  const Classes classes = classes_of("nll_loss", log_probabilities, targets, options.ignore_index,
                                     options.weights, x.dtype());
  const Tensor chosen = squeeze(gather(x, x.rank() - 1, unsqueeze(classes.considered, -1)), {-1});
  // Nothing of what is left out, be it infinite.
  const Tensor losses = where(classes.counts == 0, 0, -chosen * classes.counts);
  return reduced(losses, classes.counts, options.reduction, log_probabilities);
}

Tensor bce_with_logits(const Tensor& logits, const Tensor& targets, const BceOptions& options) {
  check_same_shape("bce_with_logits", logits, targets);
  const Tensor x = widened(logits), t = widened(targets);
  Tensor losses = softplus(x) - x * t;
  if (options.positive_weight)
    losses = (1 - t) * x + ((*options.positive_weight - 1) * t + 1) * softplus(-x);
  if (options.weights) losses = losses * *options.weights;
  return reduced(losses, options.reduction, logits);
}

Tensor bce_loss(const Tensor& probabilities, const Tensor& targets, const BceOptions& options) {
  check_same_shape("bce_loss", probabilities, targets);
  const Tensor p = widened(probabilities), t = widened(targets);
  Tensor hits = t * maximum(log(p), -100);
  if (options.positive_weight) hits = hits * *options.positive_weight;
  Tensor losses = -(hits + (1 - t) * maximum(log1p(-p), -100));
  if (options.weights) losses = losses * *options.weights;
  return reduced(losses, options.reduction, probabilities);
}

Tensor kl_div(const Tensor& log_probabilities, const Tensor& targets, bool has_log_targets,
              Reduction reduction) {
  check_same_shape("kl_div", log_probabilities, targets);
  const Tensor x = widened(log_probabilities), t = widened(targets);
  const Tensor losses = has_log_targets ? exp(t) * (t - x) : xlogy(t, t) - t * x;
  return reduced(losses, reduction, log_probabilities);
}

Tensor mse_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  check_same_shape("mse_loss", x, y);
  return reduced(square(widened(x) - widened(y)), reduction, x);
}

Tensor l1_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  check_same_shape("l1_loss", x, y);
  return reduced(abs(widened(x) - widened(y)), reduction, x);
}

Tensor huber_loss(const Tensor& x, const Tensor& y, double delta, Reduction reduction) {
  check_setting("huber_loss", "delta", delta, Interval::not_negative);
  check_same_shape("huber_loss", x, y);
  return reduced(huber(as_floats(widened(x) - widened(y)), delta, 0.5, delta), reduction, x);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, double beta, Reduction reduction) {
  check_setting("smooth_l1_loss", "beta", beta, Interval::not_negative);
  check_same_shape("smooth_l1_loss", x, y);
  if (beta == 0) return l1_loss(x, y, reduction);
  return reduced(huber(as_floats(widened(x) - widened(y)), beta, 0.5 / beta, 1), reduction, x);
}

Tensor poisson_nll_loss(const Tensor& x, const Tensor& y, const PoissonNllOptions& options) {
  check_setting("poisson_nll_loss", "eps", options.eps, Interval::not_negative);
  check_same_shape("poisson_nll_loss", x, y);
  const Tensor rate = widened(x), count = widened(y);
  Tensor losses =
      options.has_log ? exp(rate) - count * rate : rate - count * log(rate + options.eps);
  if (options.is_full) {
    const Tensor is_large = count > 1, n = where(is_large, count, 1);
    const Tensor stirling = n * log(n) - n + log(n * 6.283185307179586) * 0.5;
    losses = losses + where(is_large, stirling, 0);
  }
  return reduced(losses, options.reduction, x);
}

Tensor gaussian_nll_loss(const Tensor& x, const Tensor& y, const Tensor& variance,
                         const GaussianNllOptions& options) {
  check_setting("gaussian_nll_loss", "eps", options.eps, Interval::positive);
  check_same_shape("gaussian_nll_loss", x, y);
  if (broadcast_shapes("gaussian_nll_loss", x.shape(), variance.shape()) != x.shape()) {
    throw Error(ErrorKind::shape, {.where = "gaussian_nll_loss",
                                   .what = "a variance " + describe(variance),
                                   .expected = "one that broadcasts to " + describe(x),
                                   .got = to_string(variance.shape()),
                                   .fix = {}});
  }
  const Tensor given = expand(widened(variance), x.shape());
  const Tensor v = where(given < options.eps, options.eps, given);
  const Tensor losses = (log(v) + square(widened(x) - widened(y)) / v) * 0.5;
  return reduced(options.is_full ? losses + 0.91893853320467274 : losses, options.reduction, x);
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, Integer axis, double eps) {
  check_setting("cosine_similarity", "eps", eps, Interval::not_negative);
  check_same_shape("cosine_similarity", a, b);
  const auto unit = [&](const Tensor& z) {
    const Tensor square_sum = sum(square(z), {axis}, keepdims), is_zero = square_sum == 0;
    // The root of zero has no derivative: the norm of zeros is a constant.
    const Tensor norm = where(is_zero, 0, sqrt(where(is_zero, 1, square_sum)));
    return z / maximum(norm, eps);
  };
  const Tensor cosine = sum(unit(widened(a)) * unit(widened(b)), {axis});
  return is_floating(a.dtype()) ? cast(cosine, a.dtype()) : cosine;
}

Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin,
                             Reduction reduction) {
  const Tensor cosine = cosine_similarity(a, b, -1);
  check_same_shape("cosine_embedding_loss", cosine, y);
  return reduced(where(y > 0, 1 - cosine, relu(cosine - margin)), reduction, a);
}

Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                           const TripletMarginOptions& options) {
  constexpr const char* name = "triplet_margin_loss";
  check_setting(name, "p", options.p, Interval::positive);
  check_same_shape(name, anchor, positive);
  check_same_shape(name, anchor, negative);
  const auto distance = [&](const Tensor& a, const Tensor& b) {
    const Tensor d = widened(a) - widened(b) + options.eps;
    if (options.p == 2) return sqrt(sum(square(d), {-1}));
    return pow(sum(pow(abs(d), options.p), {-1}), 1 / options.p);
  };
  Tensor apart = distance(anchor, negative);
  if (options.swaps) apart = minimum(apart, distance(positive, negative));
  return reduced(relu(distance(anchor, positive) - apart + options.margin), options.reduction,
                 anchor);
}

Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& y, double margin,
                           Reduction reduction) {
  check_same_shape("margin_ranking_loss", a, b);
  check_same_shape("margin_ranking_loss", a, y);
  return reduced(relu(margin - y * (widened(a) - widened(b))), reduction, a);
}

Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin, Reduction reduction) {
  check_same_shape("hinge_embedding_loss", x, y);
  const Tensor given = widened(x);
  return reduced(where(y > 0, given, relu(margin - given)), reduction, x);
}

Tensor soft_margin_loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  check_same_shape("soft_margin_loss", x, y);
  return reduced(softplus(-(y * widened(x))), reduction, x);
}

// Connectionist temporal classification: section 4.1 of the paper, in logarithms. Between the
// labels, before and after them, lie blanks: paths go from one of these positions to itself or the
// next, and past a blank to the next label if that is another one.

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

void check_rank(const Tensor& x, const char* name, int rank, const char* expected) {
  if (x.rank() == rank) return;
  throw Error(ErrorKind::shape, {.where = "ctc_loss",
                                 .what = fmt::format("{} {}", name, describe(x)),
                                 .expected = expected,
                                 .got = fmt::format("rank {}", x.rank()),
                                 .fix = {}});
}

/// Lengths [batch] from 0 to `most`, as int64. Fails in compiled calls, too.
Tensor checked_lengths(const Tensor& lengths, const char* name, int64_t batch, int64_t most) {
  if (!is_integer(lengths.dtype()) || lengths.shape() != Shape{batch}) {
    throw Error(lengths.shape() == Shape{batch} ? ErrorKind::dtype : ErrorKind::shape,
                {.where = "ctc_loss",
                 .what = fmt::format("{} {}", name, describe(lengths)),
                 .expected = fmt::format("integers of shape [{}]", batch),
                 .got = describe(lengths),
                 .fix = {}});
  }
  const Tensor given = cast(lengths, i64);
  const ops::CheckText text = {"ctc_loss", name, "numbers from 0 to the most that there can be",
                               ""};
  check_elements((given >= 0) & (given <= most), text, [&] {
    return Error(ErrorKind::value, {.where = "ctc_loss",
                                    .what = name,
                                    .expected = fmt::format("numbers from 0 to {}", most),
                                    .got = fmt::format("{} to {}", min(given).item<int64_t>(),
                                                       max(given).item<int64_t>()),
                                    .fix = {}});
  });
  return given;
}

/// x[batch, positions] of `count` positions before, `nothing` at the first ones.
Tensor from_before(const Tensor& x, int64_t count, const Argument& nothing) {
  const int64_t batch = x.shape()[0], positions = x.shape()[1], shown = std::min(count, positions);
  const Tensor first = full({batch, shown}, nothing, x.dtype(), x.device());
  return concat({first, slice(x, 1, {0, positions - shown})}, 1);
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& labels, const Tensor& step_lengths,
                const Tensor& label_lengths, const CtcOptions& options) {
  check_rank(log_probabilities, "log_probabilities", 3, "[steps, batch, classes]");
  check_rank(labels, "labels", 2, "[batch, most labels]");
  const Tensor x = widened(log_probabilities);
  const int64_t steps = x.shape()[0], batch = x.shape()[1], classes = x.shape()[2];
  const int64_t most = labels.shape()[1], positions = 2 * most + 1;
  if (!is_integer(labels.dtype()) || labels.shape()[0] != batch) {
    throw Error(ErrorKind::shape, {.where = "ctc_loss",
                                   .what = "labels " + describe(labels),
                                   .expected = fmt::format("integers of shape [{}, any]", batch),
                                   .got = describe(labels),
                                   .fix = {}});
  }
  if (options.blank < 0 || options.blank >= classes || steps == 0) {
    throw Error(ErrorKind::value,
                {.where = "ctc_loss",
                 .what = fmt::format("blank {} for {}", options.blank, describe(x)),
                 .expected = "one of the classes, and a step at least",
                 .got = fmt::format("{} classes and {} steps", classes, steps),
                 .fix = {}});
  }
  const Tensor used_steps =
      unsqueeze(checked_lengths(step_lengths, "step_lengths", batch, steps), 1);
  const Tensor used = unsqueeze(checked_lengths(label_lengths, "label_lengths", batch, most), 1);

  // [batch, positions]: blank, label, blank, label, ..., blank.
  const Tensor place = arange(0, most, 1, i64, x.device());
  const Tensor known = where(place < used, cast(labels, i64), options.blank);
  const Tensor blanks = full({batch, most}, options.blank, i64, x.device());
  const Tensor end = full({batch, 1}, options.blank, i64, x.device());
  const Tensor at = concat({reshape(stack({blanks, known}, 2), {batch, 2 * most}), end}, 1);
  const auto likelihood = [&](int64_t step) { return gather(x[step], 1, at); };
  // Past a blank to another label; of two blanks none is another.
  const Tensor may_skip = at != from_before(at, 2, options.blank);
  const Tensor is_start = arange(0, positions, 1, i64, x.device()) < 2;
  Tensor alpha = where(is_start, likelihood(0), -infinity);
  for (int64_t step = 1; step < steps; ++step) {
    const Tensor near = logaddexp(alpha, from_before(alpha, 1, -infinity));
    const Tensor far = where(may_skip, from_before(alpha, 2, -infinity), -infinity);
    alpha = where(used_steps > step, logaddexp(near, far) + likelihood(step), alpha);
  }
  // Paths end at the last label or at the blank behind it.
  const Tensor last = gather(alpha, 1, used * 2);
  const Tensor label = gather(alpha, 1, maximum(used * 2 - 1, 0));
  const Tensor likely = squeeze(logaddexp(last, where(used > 0, label, -infinity)), {1});
  // Of no steps there is the empty path.
  const Tensor has_steps = squeeze(used_steps, {1}) > 0, is_empty = squeeze(used, {1}) == 0;
  Tensor losses = where(has_steps, -likely, where(is_empty, 0, infinity));
  if (options.zeroes_infinity) losses = where(losses == infinity, 0, losses);
  if (options.reduction == Reduction::mean)
    losses = mean(losses / maximum(cast(squeeze(used, {1}), x.dtype()), 1));
  if (options.reduction == Reduction::sum) losses = sum(losses);
  return cast(losses, log_probabilities.dtype());
}

}  // namespace nitinol::nn
