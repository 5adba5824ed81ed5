// Images are normalised in the order in which convolutions leave them, channels last: the sums go
// over rows of all features at once, and nothing is transposed.
#include "eager/ops/batch_norm.h"

#include "core/error.h"
#include "eager/channels_last.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/statistics.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

namespace nitinol {
namespace {

void check_shapes(const Tensor& x, const BatchNorm& options) {
  if (x.rank() < 2) {
    throw Error(ErrorKind::shape, {.where = "batch_norm",
                                   .what = "the input is " + describe(x),
                                   .expected = "[batch, features, ...]",
                                   .got = fmt::format("rank {}", x.rank()),
                                   .fix = {}});
  }
  const Shape features = {x.shape()[1]};
  for (const Tensor* of_features : {&options.weight, &options.bias}) {
    if (!of_features->is_defined() || of_features->shape() == features) continue;
    throw Error(
        ErrorKind::shape,
        {.where = "batch_norm",
         .what = fmt::format("{} with {} for its features", describe(x), describe(*of_features)),
         .expected = to_string(features),
         .got = to_string(of_features->shape()),
         .fix = "Weight and bias have a number for each feature, axis 1 of the input."});
  }
}

/// A batch as it is computed with, and where its features are.
class Batch {
 public:
  explicit Batch(const Tensor& x)
      : given_(x),
        is_images_(x.rank() == 4),
        features_(is_images_ ? 3 : 1),
        values_(widened(is_images_ ? channels_last(x) : x)) {}

  [[nodiscard]] const Tensor& values() const { return values_; }
  [[nodiscard]] Dims other_axes() const {
    Dims axes;
    for (int i = 0; i < values_.rank(); ++i) {
      if (i != features_) axes.push_back(i);
    }
    return axes;
  }
  /// A number for each feature as an operand beside the values.
  [[nodiscard]] Tensor spread(const Tensor& of_features) const {
    Shape column = Dims::filled(values_.rank() - features_, 1);
    column[0] = of_features.shape()[0];
    return reshape(of_features, column);
  }
  [[nodiscard]] Tensor scaled(const Tensor& deviation, const Tensor& variance,
                              const BatchNorm& options) const {
    const Tensor one = rsqrt(variance + options.eps);
    Tensor result =
        deviation * spread(options.weight.is_defined() ? widened(options.weight) * one : one);
    if (options.bias.is_defined()) result = result + spread(widened(options.bias));
    result = narrowed(result, given_);
    return is_images_ ? channels_first(result) : result;
  }

 private:
  Tensor given_;
  bool is_images_;
  int features_;
  Tensor values_;
};

}  // namespace

BatchNormed batch_norm(const Tensor& x, const BatchNorm& options) {
  check_shapes(x, options);
  const Batch batch(x);
  const Dims axes = batch.other_axes();
  const Tensor rounded = mean(batch.values(), axes);
  const Tensor deviation = batch.values() - batch.spread(rounded);
  const Tensor shift = mean(deviation, axes);  // what the rounded mean lacks
  const Tensor variance = mean(square(deviation), axes) - square(shift);
  return {.values = batch.scaled(deviation - batch.spread(shift), variance, options),
          .mean = rounded + shift,
          .variance = variance};
}

Tensor batch_norm(const Tensor& x, const Tensor& mean, const Tensor& variance,
                  const BatchNorm& options) {
  check_shapes(x, options);
  const Batch batch(x);
  const Tensor deviation = batch.values() - batch.spread(widened(mean));
  return batch.scaled(deviation, widened(variance), options);
}

}  // namespace nitinol
