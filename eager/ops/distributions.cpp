#include "eager/ops/distributions.h"

#include "core/error.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/elementary.h"
#include "eager/ops/index.h"
#include "eager/ops/order.h"
#include "eager/ops/random.h"
#include "eager/ops/reduce.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <string>

namespace nitinol {
namespace {

void check_floating(const char* where, DType dtype) {
  if (is_floating(dtype)) return;
  throw Error(ErrorKind::dtype, {.where = where,
                                 .what = "the dtype",
                                 .expected = "a floating one",
                                 .got = std::string(name_of(dtype)),
                                 .fix = "randint() draws integers."});
}

/// The dtype in which numbers of `dtype` are drawn.
DType drawn(DType dtype) {
  return dtype == f64 ? f64 : f32;
}

Tensor uniform_of(const Shape& shape, DType dtype, const Generator& generator) {
  return rand(shape, drawn(dtype), generator);
}

}  // namespace

Tensor uniform(const Shape& shape, double low, double high, DType dtype,
               const Generator& generator) {
  check_floating("uniform", dtype);
  if (!(low < high) || !std::isfinite(high - low))
    throw_value("uniform", "the range", "low < high, both finite",
                fmt::format("{} and {}", low, high));
  // The product may round to the width of the range.
  const Tensor made = uniform_of(shape, dtype, generator) * (high - low) + low;
  const double last =
      drawn(dtype) == f64
          ? std::nextafter(high, low)
          : double{std::nextafter(static_cast<float>(high), static_cast<float>(low))};
  return cast(minimum(made, last), dtype);
}

Tensor normal(const Shape& shape, double mean, double deviation, DType dtype,
              const Generator& generator) {
  check_floating("normal", dtype);
  if (!(deviation >= 0))
    throw_value("normal", "the deviation", "at least 0", fmt::format("{}", deviation));
  return cast(randn(shape, drawn(dtype), generator) * deviation + mean, dtype);
}

Tensor exponential(const Shape& shape, double rate, DType dtype, const Generator& generator) {
  check_floating("exponential", dtype);
  if (!(rate > 0)) throw_value("exponential", "the rate", "more than 0", fmt::format("{}", rate));
  return cast(log1p(-uniform_of(shape, dtype, generator)) * (-1 / rate), dtype);
}

Tensor bernoulli(const Tensor& probabilities) {
  return bernoulli(probabilities, default_generator(probabilities.device()));
}

Tensor bernoulli(const Tensor& probabilities, const Generator& generator) {
  const DType dtype = probabilities.dtype() == f64 ? f64 : f32;
  return rand(probabilities.shape(), dtype, generator) < cast(probabilities, dtype);
}

Tensor permutation(Integer n, const Generator& generator) {
  if (n < 0) throw_value("permutation", "n", "at least 0", fmt::format("{}", int64_t{n}));
  // Equal keys, of which there are hardly any, keep their order.
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  return argsort(randint(-most, most, {n}, i64, generator));
}

Tensor shuffle(const Tensor& x, Integer axis) {
  return shuffle(x, axis, default_generator(x.device()));
}

Tensor shuffle(const Tensor& x, Integer axis, const Generator& generator) {
  const int along = normalize_axis("shuffle", axis, x.rank());
  return take(x, permutation(x.shape()[along], generator), along);
}

Tensor categorical(const Tensor& probabilities, Integer count, bool replaces) {
  return categorical(probabilities, count, replaces, default_generator(probabilities.device()));
}

Tensor categorical(const Tensor& probabilities, Integer count, bool replaces,
                   const Generator& generator) {
  const int rank = probabilities.rank();
  if (rank == 0 || probabilities.shape().back() == 0) {
    throw Error(ErrorKind::shape, {.where = "categorical",
                                   .what = "probabilities " + describe(probabilities),
                                   .expected = "a last axis of at least one",
                                   .got = to_string(probabilities.shape()),
                                   .fix = {}});
  }
  const int64_t classes = probabilities.shape().back();
  if (count < 0 || (!replaces && count > classes)) {
    throw_value("categorical", "the number of indices",
                replaces ? "at least 0" : "at most as many as there are",
                fmt::format("{} of {}", int64_t{count}, classes));
  }
  const DType dtype = probabilities.dtype() == f64 ? f64 : f32;
  const Tensor weights = cast(probabilities, dtype);
  if (!replaces) {  // who comes first, if each comes at its rate (Efraimidis and Spirakis, 2006)
    const Tensor arrivals = -log1p(-rand(weights.shape(), dtype, generator)) / weights;
    const Tensor ends = where(weights > 0, arrivals, std::numeric_limits<double>::infinity());
    return topk(ends, count, -1, SortOrder::ascending).indices;
  }
  const Tensor sums = cumsum(weights, -1);
  const Tensor total = slice(sums, -1, {.start = -1});
  Shape shape = probabilities.shape();
  shape[rank - 1] = count;
  // Below the total also where the product is rounded up to it.
  const Tensor drawn_sums = minimum(rand(shape, dtype, generator) * total,
                                    nextafter(total, zeros({}, dtype, total.device())));
  return sum(unsqueeze(sums, -2) <= unsqueeze(drawn_sums, -1), -1);
}

}  // namespace nitinol
