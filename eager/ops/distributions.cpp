#include "eager/ops/distributions.h"

#include "core/error.h"
#include "core/math.h"
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

#include <algorithm>
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

void check_positive(const char* where, const char* what, double number) {
  if (number > 0 && std::isfinite(number)) return;
  throw_value(where, what, "more than 0", fmt::format("{}", number));
}

/// Of each column the first try that is accepted, or the first one.
Tensor first_accepted(const Tensor& tries, const Tensor& is_accepted) {
  return squeeze(gather(tries, 0, argmax(is_accepted, 0, keepdims)), 0);
}

/// A line of ln of gamma numbers of rate 1, in float64: those of small concentrations underflow.
/// Marsaglia and Tsang, A simple method for generating gamma variables, 2000: d v for a normal x
/// and v = (1 + x / sqrt(9 d))^3; below 1 that of concentration + 1 by a power of a uniform number.
Tensor log_gamma_of(int64_t count, double concentration, const Generator& generator) {
  const bool is_small = concentration < 1;
  const double d = concentration + (is_small ? 1 : 0) - 1.0 / 3;
  const Shape all = {8, count};
  const Tensor x = randn(all, f64, generator), u = 1 - rand(all, f64, generator);
  const Tensor root = x * (1 / std::sqrt(9 * d)) + 1;
  const Tensor is_positive = root > 0;
  const Tensor log_v = log(where(is_positive, root, 1)) * 3;
  const Tensor is_accepted = is_positive & (log(u) < x * x * 0.5 + (log_v - exp(log_v) + 1) * d);
  const Tensor made =
      first_accepted(where(is_accepted, log_v, 0), is_accepted) + log(Num<double>(d)).value;
  if (!is_small) return made;
  return made + log(1 - rand({count}, f64, generator)) * (1 / concentration);
}

/// The numbers of events below which the probabilities of a rate below 10 add up to less than
/// `uniform`; there are no more than 60.
Tensor events_counted(const Tensor& rate, const Tensor& uniform) {
  Tensor probability = exp(-rate), total = probability;
  Tensor count = cast(uniform >= total, f64);
  for (int k = 1; k < 60; ++k) {
    probability = probability * rate / static_cast<double>(k);
    total = total + probability;
    count = count + cast(uniform >= total, f64);
  }
  return count;
}

/// Numbers of events of a line of rates of 10 and more: W. Hoermann, The transformed rejection
/// method for generating Poisson random variables, 1993, algorithm PTRS, but for its shortcut.
Tensor events_tried(const Tensor& rate, const Generator& generator) {
  const Shape all = {20, rate.size()};
  const Tensor u = rand(all, f64, generator) - 0.5, v = 1 - rand(all, f64, generator);
  const Tensor b = sqrt(rate) * 2.53 + 0.931;
  const Tensor a = b * 0.02483 - 0.059;
  const Tensor scale = 1.1239 + 1.1328 / (b - 3.4);
  const Tensor distance = 0.5 - abs(u);
  const Tensor k = floor((a * 2 / distance + b) * u + rate + 0.43);
  const Tensor likely = k * log(rate) - rate - lgamma(where(k < 0, 0, k) + 1);
  const Tensor is_accepted =
      (k >= 0) & (log(v * scale / (a / (distance * distance) + b)) <= likely);
  return first_accepted(where(is_accepted, k, floor(rate)), is_accepted);
}

int64_t whole_number(const char* where, const Scalar& number) {
  if (number.kind() == Scalar::Kind::integer) return number.to_integer();
  throw Error(ErrorKind::dtype, {.where = where,
                                 .what = "what is chosen from",
                                 .expected = "a tensor, or an integer",
                                 .got = std::string(name_of(number.dtype())),
                                 .fix = "Give the number of integers."});
}

/// Throws Error(shape) unless the weights are n.
void check_weights(const Tensor& weights, int64_t n) {
  if (weights.shape() == Shape{n}) return;
  throw Error(ErrorKind::shape, {.where = "choice",
                                 .what = "weights " + describe(weights),
                                 .expected = fmt::format("shape [{}]", n),
                                 .got = to_string(weights.shape()),
                                 .fix = "Give one for each part that can be chosen."});
}

/// Numbers from 0 to n - 1.
Tensor drawn_places(int64_t n, const Shape& shape, bool replaces,
                    const std::optional<Tensor>& weights, const Generator& generator) {
  check_shape("choice", shape);
  const int64_t count = element_count(shape);
  if (weights) check_weights(*weights, n);
  if (n < 0 || (n == 0 && count > 0) || (!replaces && count > n)) {
    throw_value("choice", "the number of those to choose from",
                fmt::format("at least {}", replaces ? std::min<int64_t>(count, 1) : count),
                fmt::format("{}", n));
  }
  if (n == 0) return zeros(shape, i64, generator.device());
  if (weights) return reshape(categorical(*weights, count, replaces, generator), shape);
  if (replaces) return randint(0, n, shape, i64, generator);
  return reshape(slice(permutation(n, generator), 0, {0, count}), shape);
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

Tensor truncated_normal(const Shape& shape, double low, double high, double mean, double deviation,
                        DType dtype, const Generator& generator) {
  check_floating("truncated_normal", dtype);
  if (!(deviation > 0))
    throw_value("truncated_normal", "the deviation", "more than 0", fmt::format("{}", deviation));
  if (!(low < high))
    throw_value("truncated_normal", "the range", "low < high", fmt::format("{} and {}", low, high));
  const double from = (low - mean) / deviation / std::sqrt(2.0);
  const double to = (high - mean) / deviation / std::sqrt(2.0);
  const double first = erf(Num<double>(from)).value, last = erf(Num<double>(to)).value;
  if (!(last - first > 1e-6)) {
    throw_value("truncated_normal", "the range",
                "numbers that the normal distribution gives more often than once in 2 million",
                fmt::format("{} and {}, mean {}, deviation {}", low, high, mean, deviation));
  }
  constexpr double below_1 = 0x1.fffffffffffffp-1;  // of which erfinv is finite
  const Tensor shares = rand(shape, f64, generator) * (last - first) + first;
  const Tensor made =
      erfinv(clamp(shares, -below_1, below_1)) * (deviation * std::sqrt(2.0)) + mean;
  return cast(clamp(made, low, high), dtype);
}

Tensor exponential(const Shape& shape, double rate, DType dtype, const Generator& generator) {
  check_floating("exponential", dtype);
  if (!(rate > 0)) throw_value("exponential", "the rate", "more than 0", fmt::format("{}", rate));
  return cast(log1p(-uniform_of(shape, dtype, generator)) * (-1 / rate), dtype);
}

Tensor gamma(const Shape& shape, double concentration, double rate, DType dtype,
             const Generator& generator) {
  check_floating("gamma", dtype);
  check_positive("gamma", "the concentration", concentration);
  check_positive("gamma", "the rate", rate);
  check_shape("gamma", shape);
  const Tensor made = exp(log_gamma_of(element_count(shape), concentration, generator)) / rate;
  return reshape(cast(made, dtype), shape);
}

Tensor beta(const Shape& shape, double a, double b, DType dtype, const Generator& generator) {
  check_floating("beta", dtype);
  check_positive("beta", "a", a);
  check_positive("beta", "b", b);
  check_shape("beta", shape);
  const Tensor first = log_gamma_of(element_count(shape), a, generator);
  const Tensor second = log_gamma_of(element_count(shape), b, generator);
  return reshape(cast(sigmoid(first - second), dtype), shape);
}

Tensor poisson(const Tensor& rates) {
  return poisson(rates, default_generator(rates.device()));
}

Tensor poisson(const Tensor& rates, const Generator& generator) {
  const Tensor rate = flatten(cast(rates, f64));
  const Tensor is_few = rate < 10, is_endless = isinf(rate);
  const Tensor few = events_counted(where(is_few, rate, 1), rand(rate.shape(), f64, generator));
  const Tensor many = events_tried(where(is_few | is_endless, 10, rate), generator);
  const Tensor made = where(is_few, few, where(is_endless, rate, many));
  return reshape(cast(where(rate >= 0, made, -1), i64), rates.shape());
}

Tensor bernoulli(const Tensor& probabilities) {
  return bernoulli(probabilities, default_generator(probabilities.device()));
}

Tensor bernoulli(const Tensor& probabilities, const Generator& generator) {
  const DType dtype = probabilities.dtype() == f64 ? f64 : f32;
  return rand(probabilities.shape(), dtype, generator) < cast(probabilities, dtype);
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

Tensor choice(const Argument& x, const Shape& shape, bool replaces,
              const std::optional<Tensor>& weights, Integer axis) {
  const Device device = x.tensor() != nullptr ? x.tensor()->device() : default_device();
  return choice(x, shape, replaces, weights, axis, default_generator(device));
}

Tensor choice(const Argument& x, const Shape& shape, bool replaces,
              const std::optional<Tensor>& weights, Integer axis, const Generator& generator) {
  if (x.tensor() == nullptr) {
    const int64_t n = whole_number("choice", x.scalar());
    return drawn_places(n, shape, replaces, weights, generator);
  }
  const int along = normalize_axis("choice", axis, x.tensor()->rank());
  const int64_t n = x.tensor()->shape()[along];
  return take(*x.tensor(), drawn_places(n, shape, replaces, weights, generator), along);
}

}  // namespace nitinol
