#include "nn/parametrizations.h"

#include "autograd/gradient.h"
#include "core/autocast.h"
#include "core/error.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"
#include "nn/checks.h"

#include <fmt/format.h>

namespace nitinol::nn::parametrization {
namespace {

/// Slices along the axis as rows.
Tensor rows_of(const Tensor& weight, int64_t axis) {
  const Tensor rows = moveaxis(widened(weight), axis, 0);
  return reshape(rows, {rows.shape()[0], -1});
}

Tensor unit(const Tensor& vector, double eps) {
  return vector / maximum(vector_norm(vector), eps);
}

void move(const Tensor& rows, const Spectrum& spectrum, int64_t steps, double eps) {
  const NoGradients scope;
  const auto moved = [&](const Variable& vector, const Tensor& next) {
    vector.set(cast(unit(next, eps), vector.dtype()));
  };
  for (int64_t i = 0; i < steps; ++i) {
    moved(spectrum.left, matmul(rows, widened(spectrum.right)));
    moved(spectrum.right, matmul(widened(spectrum.left), rows));
  }
}

}  // namespace

Tensor norms(const Tensor& weight, int64_t axis) {
  const int rank = weight.rank();
  if (axis < -rank || axis >= rank) {
    throw Error(ErrorKind::value,
                {.where = "weight_norm",
                 .what = fmt::format("axis {} of a weight {}", axis, describe(weight)),
                 .expected = fmt::format("an axis from {} to {}", -rank, rank - 1),
                 .got = fmt::format("{}", axis),
                 .fix = {}});
  }
  Dims others;
  for (int i = 0; i < rank; ++i)
    if (i != axis && i != axis + rank) others.push_back(i);
  return narrowed(vector_norm(widened(weight), others, 2, keepdims), weight);
}

Tensor with_norms(const Tensor& direction, const Tensor& norms_wanted, int64_t axis) {
  const Tensor scale = widened(norms_wanted) / widened(norms(direction, axis));
  return narrowed(widened(direction) * scale, direction);
}

Spectrum spectrum(const Tensor& weight, int64_t axis, double eps) {
  const NoGradients scope;
  const Tensor rows = rows_of(weight, axis);
  const auto drawn = [&](int64_t size) {
    const Tensor vector = randn({size}, rows.dtype(), default_generator(rows.device()));
    return Variable(narrowed(unit(vector, eps), weight));
  };
  Spectrum made = {.left = drawn(rows.shape()[0]), .right = drawn(rows.shape()[1])};
  move(rows, made, 15, eps);
  return made;
}

Tensor with_unit_spectrum(const Tensor& weight, const Spectrum& spectrum, int64_t axis,
                          int64_t steps, double eps) {
  const AutocastScope scope(f32);  // which would round the vectors
  const Tensor rows = rows_of(weight, axis);
  move(stop_gradient(rows), spectrum, steps, eps);
  // The vectors are constants of the gradient.
  const Tensor largest = sum(widened(spectrum.left) * matmul(rows, widened(spectrum.right)));
  return narrowed(widened(weight) / largest, weight);
}

void check_spectral_norm(int64_t steps, double eps) {
  check_at_least("spectral_norm", "steps", steps, 1);
  check_setting("spectral_norm", "eps", eps, Interval::positive);
}

}  // namespace nitinol::nn::parametrization
