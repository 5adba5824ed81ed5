#include "nn/layers.h"

#include "autograd/gradient.h"
#include "core/error.h"
#include "eager/ops/ops.h"
#include "eager/print.h"
#include "eager/promotion.h"
#include "nn/checks.h"
#include "nn/init.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace nitinol::nn {
namespace {

/// Throws Error(shape) unless the axis has the size that the layer was made for.
void check_features(const char* where, const Tensor& x, int axis, int64_t features) {
  const int at = axis < 0 ? x.rank() + axis : axis;
  if (at >= 0 && at < x.rank() && x.shape()[at] == features) return;
  throw Error(ErrorKind::shape,
              {.where = where,
               .what = "the input is " + describe(x),
               .expected = fmt::format("{} features along axis {}", features, axis),
               .got = at >= 0 && at < x.rank() ? fmt::format("{}", x.shape()[at])
                                               : fmt::format("rank {}", x.rank()),
               .fix = "Check the layer before, and what this one was made for."});
}

}  // namespace

Linear linear(Integer in, Integer out, const LinearOptions& options) {
  check_at_least("linear", "in", in, 1);
  check_at_least("linear", "out", out, 1);
  const double bound = 1 / std::sqrt(static_cast<double>(in));
  Linear layer = {.weight = parameter(uniform({in, out}, bound, options.dtype)), .bias = {}};
  if (options.has_bias) layer.bias = parameter(uniform({out}, bound, options.dtype));
  return layer;
}

Tensor Linear::operator()(const Tensor& x) const {
  return with_weight(weight, x);
}

Tensor Linear::with_weight(const Tensor& other, const Tensor& x) const {
  check_features("Linear", x, -1, other.rank() == 2 ? other.shape()[0] : 0);
  const Tensor product = matmul(x, other);
  return bias ? product + beside_product(*bias, product) : product;
}

Conv2d conv2d(Integer in, Integer out, Pair kernel, const Conv2dLayerOptions& options) {
  check_at_least("conv2d", "in", in, 1);
  check_at_least("conv2d", "out", out, 1);
  check_at_least("conv2d", "kernel", std::min(kernel.rows(), kernel.columns()), 1);
  const int64_t groups = options.conv.groups;
  if (groups < 1 || in % groups != 0 || out % groups != 0) {
    throw Error(ErrorKind::value, {.where = "conv2d",
                                   .what = fmt::format("{} groups for {} channels in and {} out",
                                                       groups, int64_t{in}, int64_t{out}),
                                   .expected = "a number of groups that divides both",
                                   .got = fmt::format("{}", groups),
                                   .fix = {}});
  }
  const Shape shape = {out, in / groups, kernel.rows(), kernel.columns()};
  const int64_t seen = in / groups * kernel.rows() * kernel.columns();
  const double bound = 1 / std::sqrt(static_cast<double>(seen));
  Conv2d layer = {.weight = parameter(uniform(shape, bound, options.dtype)),
                  .bias = {},
                  .options = options.conv};
  if (options.has_bias) layer.bias = parameter(uniform({out}, bound, options.dtype));
  return layer;
}

Tensor Conv2d::operator()(const Tensor& x) const {
  return with_weight(weight, x);
}

Tensor Conv2d::with_weight(const Tensor& other, const Tensor& x) const {
  if (x.rank() != 4) {
    throw Error(
        ErrorKind::shape,
        {.where = "Conv2d",
         .what =
             fmt::format("the input is {} for weights {}", describe(x), describe(weight.spec())),
         .expected = fmt::format("images [n, {}, h, w]", weight.shape()[1] * options.groups),
         .got = fmt::format("rank {}", x.rank()),
         .fix = "A single image needs unsqueeze(x, 0), images without channels "
                "unsqueeze(x, 1)."});
  }
  check_features("Conv2d", x, 1, weight.shape()[1] * options.groups);
  return bias ? nitinol::conv2d(x, other, *bias, options) : nitinol::conv2d(x, other, options);
}

Tensor MaxPool2d::operator()(const Tensor& x) const {
  return max_pool2d(x, kernel, options);
}

Tensor AvgPool2d::operator()(const Tensor& x) const {
  return avg_pool2d(x, kernel, options);
}

namespace {

/// A table of rows, of which that of `padding` is 0.
Variable table_of(const char* where, Integer count, Integer width, std::optional<int64_t> padding,
                  DType dtype) {
  check_at_least(where, "count", count, 1);
  check_at_least(where, "width", width, 1);
  const Tensor rows = randn({count, width}, dtype);
  if (!padding) return parameter(rows);
  if (*padding >= -count && *padding < count) return parameter(rows.at({*padding}).set(0));
  throw Error(ErrorKind::value, {.where = where,
                                 .what = "the setting `padding`",
                                 .expected = fmt::format("a row of {}", int64_t{count}),
                                 .got = fmt::format("{}", *padding),
                                 .fix = {}});
}

/// Which indices are not `padding`, which may count from the end.
Tensor counts(const Tensor& indices, int64_t padding, int64_t count) {
  const int64_t other = padding < 0 ? padding + count : padding - count;
  return indices != padding && indices != other;
}

}  // namespace

Embedding embedding(Integer count, Integer width, const EmbeddingOptions& options) {
  if (options.max_norm)
    check_setting("embedding", "max_norm", *options.max_norm, Interval::positive);
  return {.weight = table_of("embedding", count, width, options.padding, options.dtype),
          .padding = options.padding,
          .max_norm = options.max_norm};
}

Tensor Embedding::operator()(const Tensor& indices) const {
  if (max_norm) {
    check_setting("Embedding", "max_norm", *max_norm, Interval::positive);
    const NoGradients scope;
    const Tensor table = weight;
    const Tensor rows = take(table, indices);
    const Tensor norms = sqrt(sum(square(widened(rows)), {-1}, keepdims));
    // As PyTorch: rows within the limit stay as they are.
    const Tensor scaled = where(norms > *max_norm, rows * (*max_norm / (norms + 1e-7)), rows);
    weight.set(scatter(table, indices, cast(scaled, table.dtype())));
  }
  const Tensor rows = take(weight, indices);
  if (!padding) return rows;
  return where(unsqueeze(counts(indices, *padding, weight.shape()[0]), -1), rows,
               stop_gradient(rows));
}

EmbeddingBag embedding_bag(Integer count, Integer width, const EmbeddingBagOptions& options) {
  return {.weight = table_of("embedding_bag", count, width, options.padding, options.dtype),
          .pooling = options.pooling,
          .padding = options.padding};
}

namespace {

/// The bag in which each of `count` places is.
Tensor bags_of(const Tensor& offsets, int64_t count) {
  if (!is_integer(offsets.dtype()) || offsets.rank() != 1) {
    throw Error(offsets.rank() == 1 ? ErrorKind::dtype : ErrorKind::shape,
                {.where = "EmbeddingBag",
                 .what = "the offsets",
                 .expected = "integers of shape [bags]",
                 .got = describe(offsets),
                 .fix = {}});
  }
  const int64_t bags = offsets.shape()[0];
  const Tensor begins = cast(offsets, i64);
  const Tensor edge = full({1}, count, i64, offsets.device());
  const Tensor sizes = concat({begins, edge}) - concat({edge * 0, begins});
  const Tensor is_first = arange(bags + 1, {}, offsets.device()) == 0;
  constexpr ops::CheckText text = {
      "EmbeddingBag", "the offsets",
      "0, and then none that is less than the one before or more than there are indices",
      "They say where bags begin, not how long they are."};
  check_elements(where(is_first, sizes == 0, sizes >= 0), text, [&] {
    return Error(ErrorKind::value,
                 {.where = text.where,
                  .what = text.what,
                  .expected = text.expected,
                  .got = fmt::format("{} for {} indices", to_string(begins), count),
                  .fix = text.fix});
  });
  return searchsorted(begins, arange(count, {}, offsets.device()), Side::right) - 1;
}

[[noreturn]] void throw_bag(const Tensor& indices, const std::string& beside, const char* expected,
                            std::string got) {
  throw Error(ErrorKind::shape, {.where = "EmbeddingBag",
                                 .what = "the indices are " + describe(indices) + beside,
                                 .expected = expected,
                                 .got = std::move(got),
                                 .fix = {}});
}

}  // namespace

Tensor EmbeddingBag::operator()(const Tensor& indices, const std::optional<Tensor>& weights,
                                const std::optional<Tensor>& offsets) const {
  if (indices.rank() < 1) throw_bag(indices, "", "[..., bag]", "rank 0");
  if (offsets && indices.rank() != 1)
    throw_bag(indices, " and there are offsets", "[n]", to_string(indices.shape()));
  if (weights && weights->shape() != indices.shape())
    throw_bag(indices, " and the weights " + describe(*weights), "a weight for each of them",
              to_string(weights->shape()));
  if (weights && pooling != Pooling::sum) {
    throw Error(ErrorKind::value, {.where = "EmbeddingBag",
                                   .what = "weights of rows",
                                   .expected = "pooling by a sum",
                                   .got = pooling == Pooling::mean ? "by a mean" : "by a maximum",
                                   .fix = {}});
  }
  constexpr double nothing = -std::numeric_limits<double>::infinity();
  const bool is_max = pooling == Pooling::max;
  Tensor rows = take(weight, indices);
  if (weights) rows = rows * unsqueeze(*weights, -1);
  Tensor counted = ones({indices.size()}, i64, indices.device());
  if (padding) {
    const Tensor is_row = counts(indices, *padding, weight.shape()[0]);
    rows = where(unsqueeze(is_row, -1), rows, is_max ? nothing : 0);
    counted = cast(is_row, i64);
  } else if (!offsets) {
    return is_max ? max(rows, {-2}) : pooling == Pooling::sum ? sum(rows, {-2}) : mean(rows, {-2});
  }
  Tensor joined, number;  // of each bag
  if (offsets) {
    const Tensor bag = bags_of(*offsets, indices.shape()[0]);
    const int64_t bags = offsets->shape()[0];
    const Tensor wide = widened(rows);  // 16-bit sums are rounded once
    const Tensor empty = full({bags, rows.shape()[1]}, nothing, wide.dtype(), wide.device());
    joined = is_max ? scatter(empty, bag, wide, Arrival::maximum) : scatter_add(wide, bag, bags);
    number = unsqueeze(scatter_add(counted, bag, bags), -1);
  } else {
    number = sum(unsqueeze(counted, -1), {-2});
    joined = is_max ? max(rows, {-2}) : sum(rows, {-2});
  }
  if (pooling == Pooling::mean) joined = joined / cast(maximum(number, 1), joined.dtype());
  joined = narrowed(joined, rows);
  return is_max ? where(number > 0, joined, 0) : joined;
}

namespace {

struct Affine {
  std::optional<Variable> weight, bias;
};
Affine affine_of(const char* where, Integer features, const NormOptions& options) {
  check_at_least(where, "features", features, 1);
  check_setting(where, "eps", options.eps, Interval::not_negative);
  Affine made;
  if (options.is_affine) made.weight = parameter(ones({features}, options.dtype));
  if (options.is_affine && options.has_bias)
    made.bias = parameter(zeros({features}, options.dtype));
  return made;
}

Tensor value_of(const std::optional<Variable>& variable) {
  return variable ? variable->get() : Tensor();
}

/// x [batch, features, ...], normalised over groups of features.
Tensor normalised(const char* where, const Tensor& x, int64_t groups,
                  const std::optional<Variable>& weight, const std::optional<Variable>& bias,
                  double eps) {
  for (const auto* one : {&weight, &bias})
    if (*one && x.rank() >= 2) check_features(where, x, 1, (*one)->shape()[0]);
  return nitinol::group_norm(x, groups,
                             {.weight = value_of(weight), .bias = value_of(bias), .eps = eps});
}

}  // namespace

LayerNorm layer_norm(Integer features, const NormOptions& options) {
  Affine made = affine_of("layer_norm", features, options);
  return {.weight = made.weight, .bias = made.bias, .eps = options.eps};
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  if (weight) check_features("LayerNorm", x, -1, weight->shape()[0]);
  return nitinol::layer_norm(x, {.weight = value_of(weight), .bias = value_of(bias), .eps = eps});
}

GroupNorm group_norm(Integer groups, Integer features, const NormOptions& options) {
  Affine made = affine_of("group_norm", features, options);
  if (groups < 1 || features % groups != 0) {
    throw Error(ErrorKind::value, {.where = "group_norm",
                                   .what = fmt::format("{} groups of {} features", int64_t{groups},
                                                       int64_t{features}),
                                   .expected = "a number of groups that divides the features",
                                   .got = fmt::format("{}", int64_t{groups}),
                                   .fix = {}});
  }
  return {.groups = groups, .weight = made.weight, .bias = made.bias, .eps = options.eps};
}

Tensor GroupNorm::operator()(const Tensor& x) const {
  return normalised("GroupNorm", x, groups, weight, bias, eps);
}

InstanceNorm instance_norm(Integer features, const InstanceNormOptions& options) {
  const Affine made =
      affine_of("instance_norm", features,
                {.eps = options.eps, .is_affine = options.is_affine, .dtype = options.dtype});
  return {.weight = made.weight, .bias = made.bias, .eps = options.eps};
}

Tensor InstanceNorm::operator()(const Tensor& x) const {
  const int64_t features = x.rank() < 2 ? 1 : std::max<int64_t>(1, x.shape()[1]);
  return normalised("InstanceNorm", x, features, weight, bias, eps);
}

RmsNorm rms_norm(Integer features, double eps, DType dtype) {
  check_at_least("rms_norm", "features", features, 1);
  check_setting("rms_norm", "eps", eps, Interval::not_negative);
  return {.weight = parameter(ones({features}, dtype)), .eps = eps};
}

Tensor RmsNorm::operator()(const Tensor& x) const {
  check_setting("RmsNorm", "eps", eps, Interval::not_negative);
  check_features("RmsNorm", x, -1, weight.shape()[0]);
  return nitinol::rms_norm(x, {.weight = weight, .eps = eps});
}

BatchNorm batch_norm(Integer features, const BatchNormOptions& options) {
  const Affine made =
      affine_of("batch_norm", features,
                {.eps = options.eps, .is_affine = options.is_affine, .dtype = options.dtype});
  check_setting("batch_norm", "momentum", options.momentum, Interval::share);
  return {.weight = made.weight,
          .bias = made.bias,
          .running_mean = Variable(zeros({features}, options.dtype)),
          .running_var = Variable(ones({features}, options.dtype)),
          .eps = options.eps,
          .momentum = options.momentum,
          .is_synchronized = options.is_synchronized};
}

namespace {

/// The statistics of all ranks' batches as one, of `count` elements of a feature here: those of the
/// parts, by their sizes, and how far the parts' means are apart; and the size of all.
std::pair<BatchNormed, Tensor> of_all_ranks(const Tensor& x, const BatchNormed& own, double count,
                                            const nitinol::BatchNorm& options) {
  const Tensor size = full({}, count, own.mean.dtype(), x.device());
  const Tensor total = dist::all_reduce(size);
  const Tensor share = size / total;
  const Tensor mean = dist::all_reduce(own.mean * share);
  const Tensor variance = dist::all_reduce((own.variance + square(own.mean - mean)) * share);
  return {{nitinol::batch_norm(x, mean, variance, options), mean, variance}, total};
}

}  // namespace

Tensor BatchNorm::operator()(const Tensor& x) const {
  check_setting("BatchNorm", "eps", eps, Interval::not_negative);
  check_setting("BatchNorm", "momentum", momentum, Interval::share);
  const int64_t features = running_mean.shape()[0];
  check_features("BatchNorm", x, 1, features);
  const nitinol::BatchNorm options = {
      .weight = value_of(weight), .bias = value_of(bias), .eps = eps};
  if (!training) return nitinol::batch_norm(x, running_mean, running_var, options);
  BatchNormed batch = nitinol::batch_norm(x, options);
  const double count = static_cast<double>(x.size() / features);
  double unbiased = count > 1 ? count / (count - 1) : 1;
  Tensor variance = batch.variance;
  if (is_synchronized && dist::world().size() > 1) {
    Tensor total;
    std::tie(batch, total) = of_all_ranks(x, batch, count, options);
    variance = stop_gradient(batch.variance * (total / maximum(total - 1, 1)));
    unbiased = 1;
  }
  const NoGradients scope;
  const auto move = [&](const Variable& running, const Tensor& now, double factor) {
    const Tensor moved =
        widened(running) * (1 - momentum) + stop_gradient(now) * (momentum * factor);
    running.set(cast(moved, running.dtype()));
  };
  move(running_mean, batch.mean, 1);
  move(running_var, variance, unbiased);
  return batch.values;
}

Tensor LeakyRelu::operator()(const Tensor& x) const {
  return leaky_relu(x, slope);
}

PRelu prelu(Integer count, double initial, DType dtype) {
  check_at_least("prelu", "count", count, 1);
  return {.slope = parameter(full({count}, initial, dtype))};
}

Tensor PRelu::operator()(const Tensor& x) const {
  return nitinol::prelu(x, slope);
}

Tensor Elu::operator()(const Tensor& x) const {
  return elu(x, alpha);
}

Tensor Celu::operator()(const Tensor& x) const {
  return celu(x, alpha);
}

Tensor Glu::operator()(const Tensor& x) const {
  return glu(x, axis);
}

Tensor Softmax::operator()(const Tensor& x) const {
  return softmax(x, axis);
}

Tensor Identity::operator()(const Tensor& x) const {
  return x;
}

Tensor Flatten::operator()(const Tensor& x) const {
  return flatten(x, first_axis, last_axis);
}

namespace {

/// x with numbers of `drawn`'s shape, which broadcasts to it, deciding what stays.
Tensor thinned(const Tensor& x, const Shape& drawn, double rate) {
  const Tensor draws = rand(drawn, x.dtype() == f64 ? f64 : f32, default_generator(x.device()));
  return where(draws >= rate, rate < 1 ? x * (1 / (1 - rate)) : x, 0.0);
}

}  // namespace

Dropout dropout(double rate) {
  check_setting("dropout", "rate", rate, Interval::share);
  return {.rate = rate};
}

Tensor Dropout::operator()(const Tensor& x) const {
  check_setting("Dropout", "rate", rate, Interval::share);
  return training && rate > 0 ? thinned(x, x.shape(), rate) : x;
}

FeatureDropout feature_dropout(double rate) {
  check_setting("feature_dropout", "rate", rate, Interval::share);
  return {.rate = rate};
}

Tensor FeatureDropout::operator()(const Tensor& x) const {
  check_setting("FeatureDropout", "rate", rate, Interval::share);
  if (x.rank() < 2) {
    throw Error(ErrorKind::shape, {.where = "FeatureDropout",
                                   .what = "the input is " + describe(x),
                                   .expected = "[batch, features, ...]",
                                   .got = to_string(x.shape()),
                                   .fix = "A single sample needs unsqueeze(x, 0)."});
  }
  Shape drawn = Shape::filled(x.rank(), 1);
  drawn[0] = x.shape()[0];
  drawn[1] = x.shape()[1];
  return training && rate > 0 ? thinned(x, drawn, rate) : x;
}

}  // namespace nitinol::nn
