// Connectionist temporal classification: section 4.1 of the paper, in logarithms. Between the
// labels, before and after them, lie blanks: paths go from one of these positions to itself or the
// next, and past a blank to the next label if that is another one.
#include "core/error.h"
#include "eager/ops/ops.h"
#include "nn/losses.h"
#include "nn/widened.h"

#include <fmt/format.h>

#include <limits>
#include <string>

namespace nitinol::nn {
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
  try {
    check_nonzero((given >= 0) & (given <= most));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::value) throw;
    throw Error(ErrorKind::value, {.where = "ctc_loss",
                                   .what = name,
                                   .expected = fmt::format("numbers from 0 to {}", most),
                                   .got = fmt::format("{} to {}", min(given).item<int64_t>(),
                                                      max(given).item<int64_t>()),
                                   .fix = {}});
  }
  return given;
}

/// x[batch, positions] from `count` positions before, nothing at the first ones.
Tensor from_before(const Tensor& x, int64_t count) {
  const int64_t positions = x.shape()[1];
  if (positions <= count) return full(x.shape(), -infinity, x.dtype(), x.device());
  const Tensor nothing = full({x.shape()[0], count}, -infinity, x.dtype(), x.device());
  return concat({nothing, slice(x, 1, {0, positions - count})}, 1);
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
  // Past a blank to another label.
  const Tensor position = arange(0, positions, 1, i64, x.device());
  Tensor may_skip = full({batch, positions}, false, boolean, x.device());
  if (most > 1) {
    const Tensor two_before = concat(
        {full({batch, 2}, options.blank, i64, x.device()), slice(at, 1, {0, positions - 2})}, 1);
    may_skip = (at != two_before) & (at != options.blank) & (position >= 2);
  }
  Tensor alpha = where(position < 2, likelihood(0), -infinity);
  for (int64_t step = 1; step < steps; ++step) {
    const Tensor near = logaddexp(alpha, from_before(alpha, 1));
    const Tensor all = logaddexp(near, where(may_skip, from_before(alpha, 2), -infinity));
    alpha = where(used_steps > step, all + likelihood(step), alpha);
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
