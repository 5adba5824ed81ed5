#include "nn/init.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <span>
#include <vector>

namespace nitinol::nn {
namespace {

struct Fan {
  double in, out;
};

Fan fan_of(const char* where, const Shape& shape) {
  const int rank = shape.size();
  if (rank < 2) {
    throw Error(ErrorKind::shape, {.where = where,
                                   .what = "the shape of weights",
                                   .expected = "[in, out], or [out, in, window...]",
                                   .got = to_string(shape),
                                   .fix = "Use uniform() or normal() for biases."});
  }
  for (const int64_t size : shape) check_at_least(where, "size", size, 1);
  const auto first = static_cast<double>(shape[0]), second = static_cast<double>(shape[1]);
  if (rank == 2) return {first, second};
  double window = 1;
  for (int i = 2; i < rank; ++i) window *= static_cast<double>(shape[i]);
  return {window * second, window * first};
}

double kaiming_variance(const char* where, const Shape& shape, const KaimingOptions& options) {
  const Fan fan = fan_of(where, shape);
  check_setting(where, "slope", options.slope, Interval::not_negative);
  return 2 / (1 + options.slope * options.slope) / (options.counts_outputs ? fan.out : fan.in);
}

/// Gram-Schmidt on the vectors of `length` elements that follow each other: each loses its parts
/// along those before. Twice, since what is left of one that lay almost within them is inexact.
void make_orthonormal(std::vector<double>& all, std::size_t length) {
  const auto vector = [&](std::size_t i) { return std::span(all).subspan(i * length, length); };
  const auto dot = [](std::span<const double> x, std::span<const double> y) {
    return std::inner_product(x.begin(), x.end(), y.begin(), 0.0);
  };
  for (std::size_t i = 0; i < all.size() / length; ++i) {
    const std::span<double> v = vector(i);
    for (std::size_t k = 0; k < 2 * i; ++k) {
      const std::span<const double> u = vector(k % i);
      const double along = dot(v, u);
      for (std::size_t n = 0; n < length; ++n) v[n] -= along * u[n];
    }
    const double norm = std::sqrt(dot(v, v));
    for (double& x : v) x /= norm;
  }
}

}  // namespace

Tensor uniform(const Shape& shape, double bound, DType dtype) {
  check_setting("uniform", "bound", bound, Interval::not_negative);
  return cast(rand(shape) * (2 * bound) - bound, dtype);
}

Tensor normal(const Shape& shape, double deviation, DType dtype) {
  check_setting("normal", "deviation", deviation, Interval::not_negative);
  return cast(randn(shape) * deviation, dtype);
}

Tensor truncated_normal(const Shape& shape, double deviation, DType dtype) {
  check_setting("truncated_normal", "deviation", deviation, Interval::not_negative);
  return cast(nitinol::truncated_normal(shape) * deviation, dtype);
}

Tensor xavier_uniform(const Shape& shape, DType dtype, double gain) {
  const Fan fan = fan_of("xavier_uniform", shape);
  check_setting("xavier_uniform", "gain", gain, Interval::not_negative);
  return uniform(shape, gain * std::sqrt(6 / (fan.in + fan.out)), dtype);
}

Tensor xavier_normal(const Shape& shape, DType dtype, double gain) {
  const Fan fan = fan_of("xavier_normal", shape);
  check_setting("xavier_normal", "gain", gain, Interval::not_negative);
  return normal(shape, gain * std::sqrt(2 / (fan.in + fan.out)), dtype);
}

Tensor kaiming_uniform(const Shape& shape, DType dtype, const KaimingOptions& options) {
  return uniform(shape, std::sqrt(3 * kaiming_variance("kaiming_uniform", shape, options)), dtype);
}

Tensor kaiming_normal(const Shape& shape, DType dtype, const KaimingOptions& options) {
  return normal(shape, std::sqrt(kaiming_variance("kaiming_normal", shape, options)), dtype);
}

Tensor orthogonal(const Shape& shape, DType dtype, double gain) {
  static_cast<void>(fan_of("orthogonal", shape));
  check_setting("orthogonal", "gain", gain, Interval::not_negative);
  const auto rows = static_cast<std::size_t>(shape[0]);
  const auto columns = static_cast<std::size_t>(element_count(shape)) / rows;
  const std::size_t count = std::min(rows, columns), length = std::max(rows, columns);
  std::vector<double> q = randn(shape, f64).to_vector<double>();
  make_orthonormal(q, length);
  const Tensor made =
      from_span<double>(q, {static_cast<int64_t>(count), static_cast<int64_t>(length)});
  const Tensor lying = rows < columns ? made : permute(made, {1, 0});
  return cast(reshape(lying * gain, shape), dtype);
}

Tensor dirac(const Shape& shape, DType dtype, int64_t groups) {
  if (shape.size() < 3) {
    throw Error(ErrorKind::shape, {.where = "dirac",
                                   .what = "the shape of a convolution's weights",
                                   .expected = "[out, in, window...]",
                                   .got = to_string(shape),
                                   .fix = "Use eye() for a matrix."});
  }
  static_cast<void>(fan_of("dirac", shape));
  check_at_least("dirac", "groups", groups, 1);
  if (shape[0] % groups != 0) {
    throw Error(ErrorKind::value, {.where = "dirac",
                                   .what = "the setting `groups`",
                                   .expected = fmt::format("a divisor of {}", shape[0]),
                                   .got = fmt::format("{}", groups),
                                   .fix = "Give the groups of the convolution."});
  }
  int64_t window = 1, middle = 0;
  for (int i = 2; i < shape.size(); ++i) {
    window *= shape[i];
    middle = middle * shape[i] + shape[i] / 2;
  }
  std::vector<double> weights(static_cast<std::size_t>(element_count(shape)));
  const int64_t each = shape[0] / groups;
  for (int64_t i = 0; i < shape[0]; ++i) {
    const int64_t channel = i % each;
    if (channel < shape[1])
      weights[static_cast<std::size_t>((i * shape[1] + channel) * window + middle)] = 1;
  }
  return cast(from_span<double>(weights, shape), dtype);
}

}  // namespace nitinol::nn
