// The maximum of windows is one of two linear ops that a second operand, x, steers: window_max
// picks the value at the place of the largest x in each window, and window_max_input, its gradient,
// puts values there. max_pool2d picks from x itself.
//
// Images are [n, h, w, c] here and row-major; the public functions permute.
#include "eager/ops/pool.h"

#include "eager/apply.h"
#include "eager/channels_last.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/conv.h"
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/windows.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string>

namespace nitinol {
namespace {

constexpr std::array<std::string_view, 3> pool_attrs = {"kernel", "stride", "padding"};

Windows windows_of(const Attrs& attrs) {
  return {.kernel = pair(attrs, 0), .stride = pair(attrs, 1), .padding = pair(attrs, 2)};
}

/// The size of what windows with these attributes give on images of this size.
std::array<int64_t, 2> checked_size(std::string_view where, const Attrs& attrs, int64_t height,
                                    int64_t width) {
  const auto &kernel = attr<Dims>(attrs, 0), &padding = attr<Dims>(attrs, 2);
  checked_pair(where, "kernel", kernel, 1);
  checked_pair(where, "stride", attr<Dims>(attrs, 1), 1);
  checked_pair(where, "padding", padding, 0);
  if (2 * padding[0] <= kernel[0] && 2 * padding[1] <= kernel[1])
    return count_windows(where, windows_of(attrs), height, width);
  throw Error(
      ErrorKind::shape,
      {.where = std::string(where),
       .what = fmt::format("padding {} of windows {}", to_string(padding), to_string(kernel)),
       .expected = "at most half the window",
       .got = to_string(padding),
       .fix = "A window without a pixel has no value; use pad for more."});
}

/// The spec of what windows of the first operand give; checks the operands' dtypes and ranks.
Spec pooled(const Op& op, Inputs inputs, const Attrs& attrs) {
  for (const Tensor* input : inputs) {
    check_dtype(op, *input);
    check_images(op.name, *input, "[n, h, w, c]");
  }
  Spec spec = inputs[0]->spec();
  spec.is_weak = false;
  spec.device = common_device(op, inputs);
  const std::array<int64_t, 2> size = checked_size(op.name, attrs, spec.shape[1], spec.shape[2]);
  if (spec.shape[1] * spec.shape[2] > std::numeric_limits<int32_t>::max()) {
    throw Error(ErrorKind::unsupported, {.where = std::string(op.name),
                                         .what = describe(*inputs[0]),
                                         .expected = "images of less than 2^31 pixels",
                                         .got = to_string(inputs[0]->shape()),
                                         .fix = "Cut them into parts."});
  }
  spec.shape[1] = size[0];
  spec.shape[2] = size[1];
  return spec;
}

void check_second(const Op& op, Inputs inputs, const Shape& expected) {
  if (inputs[1]->shape() == expected && inputs[1]->dtype() == inputs[0]->dtype()) return;
  throw Error(ErrorKind::shape,
              {.where = std::string(op.name),
               .what = fmt::format("{} with {}", describe(*inputs[0]), describe(*inputs[1])),
               .expected = to_string(expected) + " of one dtype",
               .got = describe(*inputs[1]),
               .fix = {}});
}

Tensor picked(const Tensor& x, const Tensor& values, const Attrs& attrs);
Tensor put(const Tensor& x, const Tensor& values, const Attrs& attrs);

Spec infer_window_max(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = pooled(op, inputs, attrs);
  check_second(op, inputs, inputs[0]->shape());
  return spec;
}

Spec infer_window_max_input(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = pooled(op, inputs, attrs);
  check_second(op, inputs, spec.shape);
  spec.shape = inputs[0]->shape();
  return spec;
}

LibraryCall call_window_max(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  return windowed_call(LibraryCall::Kind::window_max, windows_of(attrs), inputs, spec);
}

LibraryCall call_window_max_input(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  return windowed_call(LibraryCall::Kind::window_max_input, windows_of(attrs), inputs, spec);
}

Tensor window_max_rule(const GradientCall& c, int k) {
  return k == 0 ? Tensor() : put(c.inputs[0], c.gradient, c.attrs);
}

Tensor window_max_input_rule(const GradientCall& c, int k) {
  return k == 0 ? Tensor() : picked(c.inputs[0], c.gradient, c.attrs);
}

constexpr auto pooling = family({
    {.name = "window_max",
     .kind = OpKind::index,
     .arity = 2,
     .accepts = numeric,
     .attr_names = pool_attrs,
     .infer = infer_window_max,
     .call = call_window_max,
     .gradient = {.rule = window_max_rule, .looks_at_inputs = 0b01},
     .summary = "The value at the place of each window's largest element."},
    {.name = "window_max_input",
     .kind = OpKind::index,
     .arity = 2,
     .accepts = numeric,
     .attr_names = pool_attrs,
     .infer = infer_window_max_input,
     .call = call_window_max_input,
     .gradient = {.rule = window_max_input_rule, .looks_at_inputs = 0b01},
     .summary = "Values added at the places of windows' largest elements."},
});

Tensor picked(const Tensor& x, const Tensor& values, const Attrs& attrs) {
  const Tensor from = row_major(values);
  return apply(pooling["window_max"], {&x, &from}, attrs);
}

Tensor put(const Tensor& x, const Tensor& values, const Attrs& attrs) {
  const Tensor given = row_major(values);
  return apply(pooling["window_max_input"], {&x, &given}, attrs);
}

/// What both public functions check first: `x` is images of an accepted dtype.
void check_pooling(std::string_view where, DTypes accepts, const Tensor& x) {
  check_images(where, x, "[n, c, h, w]");
  check_dtype(where, accepts, x);
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Pair kernel, const MaxPool2dOptions& options) {
  check_pooling("max_pool2d", numeric, x);
  const Attrs attrs = {kernel.dims(), options.stride.value_or(kernel).dims(),
                       options.padding.dims()};
  checked_size("max_pool2d", attrs, x.shape()[2], x.shape()[3]);
  const Tensor images = row_major(channels_last(x));
  return channels_first(apply(pooling["window_max"], {&images, &images}, attrs));
}

Tensor avg_pool2d(const Tensor& x, Pair kernel, const AvgPool2dOptions& options) {
  check_pooling("avg_pool2d", floating, x);
  const Pair stride = options.stride.value_or(kernel);
  checked_size("avg_pool2d", {kernel.dims(), stride.dims(), options.padding.dims()}, x.shape()[2],
               x.shape()[3]);
  const int64_t channels = x.shape()[1];
  const auto total = [&](const Tensor& images, int64_t groups) {
    const Tensor each = ones({groups, 1, kernel.rows(), kernel.columns()}, x.dtype(), x.device());
    return conv2d(images, each, {.stride = stride, .padding = options.padding, .groups = groups});
  };
  const bool is_padded = options.padding.rows() > 0 || options.padding.columns() > 0;
  if (!options.counts_padding && is_padded) {
    const Tensor count = total(ones({1, 1, x.shape()[2], x.shape()[3]}, x.dtype(), x.device()), 1);
    return total(x, channels) / count;
  }
  return total(x, channels) / static_cast<double>(kernel.rows() * kernel.columns());
}

std::span<const Op> pool_ops() {
  return pooling.ops;
}

}  // namespace nitinol
