#include "nn/layers.h"

#include "autograd/custom.h"
#include "core/error.h"
#include "core/place.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"
#include "nn/init.h"
#include "nn/widened.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

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
  check_features("Linear", x, -1, weight.shape()[0]);
  const Tensor product = matmul(x, weight);
  return bias ? product + *bias : product;
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
  return bias ? nitinol::conv2d(x, weight, *bias, options) : nitinol::conv2d(x, weight, options);
}

Tensor MaxPool2d::operator()(const Tensor& x) const {
  return max_pool2d(x, kernel, options);
}

Tensor AvgPool2d::operator()(const Tensor& x) const {
  return avg_pool2d(x, kernel, options);
}

Embedding embedding(Integer count, Integer width, DType dtype) {
  check_at_least("embedding", "count", count, 1);
  check_at_least("embedding", "width", width, 1);
  return {.weight = parameter(randn({count, width}, dtype))};
}

Tensor Embedding::operator()(const Tensor& indices) const {
  return take(weight, indices);
}

LayerNorm layer_norm(Integer features, double eps, DType dtype) {
  check_at_least("layer_norm", "features", features, 1);
  check_setting("layer_norm", "eps", eps, Interval::not_negative);
  return {.weight = parameter(ones({features}, dtype)),
          .bias = parameter(zeros({features}, dtype)),
          .eps = eps};
}

Tensor LayerNorm::operator()(const Tensor& x) const {
  check_features("LayerNorm", x, -1, weight.shape()[0]);
  return nitinol::layer_norm(x, {.weight = weight, .bias = bias, .eps = eps});
}

RmsNorm rms_norm(Integer features, double eps, DType dtype) {
  check_at_least("rms_norm", "features", features, 1);
  check_setting("rms_norm", "eps", eps, Interval::not_negative);
  return {.weight = parameter(ones({features}, dtype)), .eps = eps};
}

Tensor RmsNorm::operator()(const Tensor& x) const {
  check_setting("RmsNorm", "eps", eps, Interval::not_negative);
  check_features("RmsNorm", x, -1, weight.shape()[0]);
  const Tensor given = widened(x);
  const Tensor scale = rsqrt(mean(square(given), {-1}, keepdims) + eps);
  return cast(given * scale * widened(weight), promote(x.dtype(), weight.dtype()));
}

BatchNorm batch_norm(Integer features, DType dtype) {
  check_at_least("batch_norm", "features", features, 1);
  return {.weight = parameter(ones({features}, dtype)),
          .bias = parameter(zeros({features}, dtype)),
          .running_mean = Variable(zeros({features}, dtype)),
          .running_var = Variable(ones({features}, dtype))};
}

Tensor BatchNorm::operator()(const Tensor& x) const {
  check_setting("BatchNorm", "eps", eps, Interval::not_negative);
  check_setting("BatchNorm", "momentum", momentum, Interval::share);
  check_features("BatchNorm", x, 1, weight.shape()[0]);
  const nitinol::BatchNorm options = {.weight = weight, .bias = bias, .eps = eps};
  if (!training) return nitinol::batch_norm(x, running_mean, running_var, options);
  const BatchNormed batch = nitinol::batch_norm(x, options);
  const NoGradients scope;
  const double count = static_cast<double>(x.size() / weight.shape()[0]);
  const double unbiased = count > 1 ? count / (count - 1) : 1;
  const auto move = [&](const Variable& running, const Tensor& now, double factor) {
    const Tensor moved =
        widened(running) * (1 - momentum) + stop_gradient(now) * (momentum * factor);
    running.set(cast(moved, running.dtype()));
  };
  move(running_mean, batch.mean, 1);
  move(running_var, batch.variance, unbiased);
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

Dropout dropout(double rate) {
  check_setting("dropout", "rate", rate, Interval::below_one);
  return {.rate = rate};
}

Tensor Dropout::operator()(const Tensor& x) const {
  check_setting("Dropout", "rate", rate, Interval::below_one);
  if (!training || rate == 0) return x;
  const Tensor draws = rand(x.shape(), x.dtype() == f64 ? f64 : f32, default_generator(x.device()));
  return where(draws >= rate, x * (1 / (1 - rate)), 0.0);
}

Lstm lstm(Integer in, Integer hidden, DType dtype) {
  check_at_least("lstm", "in", in, 1);
  check_at_least("lstm", "hidden", hidden, 1);
  const double bound = 1 / std::sqrt(static_cast<double>(hidden));
  return {.input_weight = parameter(uniform({in, 4 * hidden}, bound, dtype)),
          .hidden_weight = parameter(uniform({hidden, 4 * hidden}, bound, dtype)),
          .bias = parameter(uniform({4 * hidden}, bound, dtype))};
}

namespace {

/// What one step of an Lstm computes; all [batch, hidden].
struct LstmStep {
  Tensor input, forget, update, output;         ///< gates
  Tensor cell_before, hidden_before, squashed;  ///< squashed: tanh of the new cell
};

/// An Lstm over all steps with its own gradient, because the weights' gradients are then one
/// product over all steps rather than one for each. Takes x, the first hidden and cell values, and
/// the weights; gives the hidden values of all steps and after them the last cell value.
class LstmRun {
 public:
  explicit LstmRun(bool wants_x) : wants_x_(wants_x) {}

  auto operator()(const Tensor& x, const Tensor& hidden, const Tensor& cell,
                  const Tensor& input_weight, const Tensor& hidden_weight,
                  const Tensor& bias) const {
    std::optional<CallSite> place;
    const OnePlaceScope scope(place);
    const int64_t width = hidden_weight.shape()[0];
    // All steps' inputs at once: one product instead of one for each step.
    const Tensor projected = matmul(x, input_weight) + bias;
    std::vector<LstmStep> steps;
    std::vector<Tensor> results;
    Tensor h = hidden;
    Tensor c = cell;
    for (int64_t t = 0; t < x.shape()[0]; ++t) {
      const Tensor gates = projected[t] + matmul(h, hidden_weight);
      const auto gate = [&](int64_t k) { return slice(gates, 1, {k * width, (k + 1) * width}); };
      LstmStep step = {.input = sigmoid(gate(0)),
                       .forget = sigmoid(gate(1)),
                       .update = tanh(gate(2)),
                       .output = sigmoid(gate(3)),
                       .cell_before = c,
                       .hidden_before = h,
                       .squashed = {}};
      c = step.forget * c + step.input * step.update;
      step.squashed = tanh(c);
      h = step.output * step.squashed;
      results.push_back(h);
      steps.push_back(std::move(step));
    }
    results.push_back(c);
    const bool wants_x = wants_x_;
    auto pull = [=, steps = std::move(steps)](const Tensor& gradient) {
      std::optional<CallSite> place_back =
          place;  // what goes back comes from where it went forward
      const OnePlaceScope scope_back(place_back);
      Tensor dc = gradient[static_cast<int64_t>(steps.size())];
      Tensor dh = zeros_like(dc);
      std::vector<Tensor> gates(steps.size());
      std::vector<Tensor> hidden_values(steps.size());
      for (std::size_t t = steps.size(); t-- > 0;) {
        const LstmStep& s = steps[t];
        dh = dh + gradient[static_cast<int64_t>(t)];
        dc = dc + dh * s.output * (1 - square(s.squashed));
        gates[t] = concat(
            {dc * s.update * (s.input * (1 - s.input)),
             dc * s.cell_before * (s.forget * (1 - s.forget)),
             dc * s.input * (1 - square(s.update)), dh * s.squashed * (s.output * (1 - s.output))},
            1);
        hidden_values[t] = s.hidden_before;
        dh = matmul(gates[t], transpose(hidden_weight, 0, 1));
        dc = dc * s.forget;
      }
      const int64_t rows = x.shape()[0] * x.shape()[1];
      const auto flat = [rows](const Tensor& values) {
        return reshape(values, {rows, values.shape()[values.rank() - 1]});
      };
      const Tensor all = flat(stack(gates));
      return std::tuple(
          wants_x ? reshape(matmul(all, transpose(input_weight, 0, 1)), x.shape()) : Tensor(), dh,
          dc, matmul(transpose(flat(x), 0, 1), all),
          matmul(transpose(flat(stack(hidden_values)), 0, 1), all), sum(all, {0}));
    };
    return std::pair(stack(results), std::move(pull));
  }

 private:
  bool wants_x_;
};

}  // namespace

Lstm::Output Lstm::operator()(const Tensor& x, std::optional<State> state) const {
  if (x.rank() != 3 || x.shape()[0] == 0) {
    throw Error(ErrorKind::shape, {.where = "Lstm",
                                   .what = "the input is " + describe(x),
                                   .expected = "[steps, batch, features] of at least one step",
                                   .got = to_string(x.shape()),
                                   .fix = {}});
  }
  check_features("Lstm", x, -1, input_weight.shape()[0]);
  const int64_t steps = x.shape()[0];
  if (!state) {
    const Tensor start = zeros({x.shape()[1], hidden_weight.shape()[0]}, x.dtype(), x.device());
    state = State{start, start};
  }
  const Tensor all = custom_gradient(LstmRun(x.tracks_gradient()))(
      x, state->hidden, state->cell, input_weight.get(), hidden_weight.get(), bias.get());
  return {slice(all, 0, {0, steps}), {all[steps - 1], all[steps]}};
}

MultiHeadAttention multi_head_attention(Integer width, Integer heads,
                                        const AttentionOptions& options) {
  check_at_least("multi_head_attention", "width", width, 1);
  if (heads < 1 || width % heads != 0) {
    throw Error(ErrorKind::value,
                {.where = "multi_head_attention",
                 .what = fmt::format("{} heads for a width of {}", int64_t{heads}, int64_t{width}),
                 .expected = "a number of heads that divides the width",
                 .got = fmt::format("{}", int64_t{heads}),
                 .fix = {}});
  }
  const LinearOptions projection = {.has_bias = options.has_bias, .dtype = options.dtype};
  return {.qkv = linear(width, 3 * width, projection),
          .proj = linear(width, width, projection),
          .heads = heads,
          .is_causal = options.is_causal};
}

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal) {
  const int64_t features = q.rank() < 2 ? 0 : q.shape()[q.rank() - 1];
  for (const Tensor* x : {&q, &k, &v}) {
    const bool is_value = x == &v;  // its width is its own
    if (x->rank() >= 2 && (is_value || x->shape()[x->rank() - 1] == features)) continue;
    throw Error(ErrorKind::shape,
                {.where = "attention",
                 .what = fmt::format("queries {}, keys {} and values {}", describe(q), describe(k),
                                     describe(v)),
                 .expected = "[..., positions, width], with one width for queries and keys",
                 .got = to_string(x->shape()),
                 .fix = "A single sequence needs no batch axis, but both others."});
  }
  const int64_t width = q.shape()[-1 + q.rank()];
  const int64_t positions = q.shape()[-2 + q.rank()];
  // float16 and bfloat16 scores would be too coarse to exponentiate.
  Tensor scores = matmul(widened(q), transpose(widened(k), -2, -1)) *
                  (1 / std::sqrt(static_cast<double>(width)));
  if (is_causal) {
    const Tensor row = unsqueeze(arange(positions, {}, q.device()), 1);
    const Tensor column = arange(k.shape()[-2 + k.rank()], {}, q.device());
    scores = where(column <= row, scores, -std::numeric_limits<double>::infinity());
  }
  return cast(matmul(softmax(scores), widened(v)), promote(q.dtype(), v.dtype()));
}

Tensor MultiHeadAttention::operator()(const Tensor& x) const {
  const int64_t made_for = qkv.weight.shape()[0];
  if (x.rank() != 3 || x.shape()[2] != made_for) {
    throw Error(ErrorKind::shape, {.where = "MultiHeadAttention",
                                   .what = "the input is " + describe(x),
                                   .expected = fmt::format("[batch, positions, {}]", made_for),
                                   .got = to_string(x.shape()),
                                   .fix = "A single sequence needs unsqueeze(x, 0)."});
  }
  check_at_least("MultiHeadAttention", "heads", heads, 1);
  const int64_t batch = x.shape()[0];
  const int64_t positions = x.shape()[1];
  const int64_t width = x.shape()[2];
  // [batch, positions, 3, heads, width / heads] -> [3, batch, heads, positions, width / heads]
  const Tensor parts =
      permute(reshape(qkv(x), {batch, positions, 3, heads, width / heads}), {2, 0, 3, 1, 4});
  const Tensor joined = attention(parts[0], parts[1], parts[2], is_causal);
  return proj(reshape(transpose(joined, 1, 2), {batch, positions, width}));
}

}  // namespace nitinol::nn
