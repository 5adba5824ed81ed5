#include "nn/init.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <cmath>

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

}  // namespace

Tensor uniform(const Shape& shape, double bound, DType dtype) {
  check_setting("uniform", "bound", bound, Interval::not_negative);
  return cast(rand(shape) * (2 * bound) - bound, dtype);
}

Tensor normal(const Shape& shape, double deviation, DType dtype) {
  check_setting("normal", "deviation", deviation, Interval::not_negative);
  return cast(randn(shape) * deviation, dtype);
}

Tensor xavier_uniform(const Shape& shape, DType dtype) {
  const Fan fan = fan_of("xavier_uniform", shape);
  return uniform(shape, std::sqrt(6 / (fan.in + fan.out)), dtype);
}

Tensor xavier_normal(const Shape& shape, DType dtype) {
  const Fan fan = fan_of("xavier_normal", shape);
  return normal(shape, std::sqrt(2 / (fan.in + fan.out)), dtype);
}

Tensor kaiming_uniform(const Shape& shape, DType dtype) {
  return uniform(shape, std::sqrt(6 / fan_of("kaiming_uniform", shape).in), dtype);
}

Tensor kaiming_normal(const Shape& shape, DType dtype) {
  return normal(shape, std::sqrt(2 / fan_of("kaiming_normal", shape).in), dtype);
}

}  // namespace nitinol::nn
