// The maximum of windows is one of two linear ops that a second operand, x, steers: window_max
// picks the value at the place of the largest x in each window, and window_max_input, its gradient,
// puts values there. max_pool2d picks from x itself.
//
// Images are [n, h, w, c] here and row-major; the public functions permute.
#include "eager/ops/pool.h"

#include "eager/apply.h"
#include "eager/channels_last.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/conv.h"
#include "eager/ops/create.h"
#include "eager/ops/infer.h"
#include "eager/ops/windows.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <string>

namespace nitinol {
namespace {

constexpr std::array<std::string_view, 3> pool_attrs = {"kernel", "stride", "padding"};

[[noreturn]] void throw_padding(std::string_view where, const Dims& kernel, const Dims& padding) {
  throw Error(
      ErrorKind::shape,
      {.where = std::string(where),
       .what = fmt::format("padding {} of windows {}", to_string(padding), to_string(kernel)),
       .expected = "at most half the window",
       .got = to_string(padding),
       .fix = "A window without a pixel has no value; use pad for more."});
}

Windows windows_of(const Attrs& attrs) {
  return {.kernel = pair(attrs, 0), .stride = pair(attrs, 1), .padding = pair(attrs, 2)};
}

Windows checked_windows(const Op& op, const Attrs& attrs) {
  checked_pair(op, attrs, 0, 1);
  checked_pair(op, attrs, 1, 1);
  checked_pair(op, attrs, 2, 0);
  const Windows windows = windows_of(attrs);
  for (const std::size_t i : {0, 1}) {
    if (2 * windows.padding[i] > windows.kernel[i])
      throw_padding(op.name, attr<Dims>(attrs, 0), attr<Dims>(attrs, 2));
  }
  return windows;
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
  const Windows windows = checked_windows(op, attrs);
  const std::array<int64_t, 2> size = count_windows(op, windows, spec.shape[1], spec.shape[2]);
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

constinit const Op window_max_op = {
    .name = "window_max",
    .kind = OpKind::index,
    .arity = 2,
    .accepts = numeric,
    .attr_names = pool_attrs,
    .infer =
        [](const Op& op, Inputs inputs, const Attrs& attrs) {
          Spec spec = pooled(op, inputs, attrs);
          check_second(op, inputs, inputs[0]->shape());
          return spec;
        },
    .call =
        [](Inputs inputs, const Attrs& attrs, const Spec& spec) {
          return windowed_call(LibraryCall::Kind::window_max, windows_of(attrs), inputs, spec);
        },
    .gradient = {.rule =
                     [](const GradientCall& c, int k) {
                       return k == 0 ? Tensor() : put(c.inputs[0], c.gradient, c.attrs);
                     },
                 .looks_at_inputs = 0b01},
    .summary = "The value at the place of each window's largest element."};

constinit const Op window_max_input_op = {
    .name = "window_max_input",
    .kind = OpKind::index,
    .arity = 2,
    .accepts = numeric,
    .attr_names = pool_attrs,
    .infer =
        [](const Op& op, Inputs inputs, const Attrs& attrs) {
          Spec spec = pooled(op, inputs, attrs);
          check_second(op, inputs, spec.shape);
          spec.shape = inputs[0]->shape();
          return spec;
        },
    .call =
        [](Inputs inputs, const Attrs& attrs, const Spec& spec) {
          return windowed_call(LibraryCall::Kind::window_max_input, windows_of(attrs), inputs,
                               spec);
        },
    .gradient = {.rule =
                     [](const GradientCall& c, int k) {
                       return k == 0 ? Tensor() : picked(c.inputs[0], c.gradient, c.attrs);
                     },
                 .looks_at_inputs = 0b01},
    .summary = "Values added at the places of windows' largest elements."};

Tensor picked(const Tensor& x, const Tensor& values, const Attrs& attrs) {
  const Tensor from = row_major(values);
  return apply(window_max_op, {&x, &from}, attrs);
}

Tensor put(const Tensor& x, const Tensor& values, const Attrs& attrs) {
  const Tensor given = row_major(values);
  return apply(window_max_input_op, {&x, &given}, attrs);
}

}  // namespace

Tensor max_pool2d(const Tensor& x, Pair kernel, const MaxPool2dOptions& options) {
  check_images("max_pool2d", x, "[n, c, h, w]");
  const Tensor images = row_major(channels_last(x));
  const Attrs attrs = {kernel.dims(), options.stride.value_or(kernel).dims(),
                       options.padding.dims()};
  return channels_first(apply(window_max_op, {&images, &images}, attrs));
}

Tensor avg_pool2d(const Tensor& x, Pair kernel, const AvgPool2dOptions& options) {
  check_images("avg_pool2d", x, "[n, c, h, w]");
  if (!is_floating(x.dtype())) {
    throw Error(ErrorKind::dtype, {.where = "avg_pool2d",
                                   .what = "the mean of " + describe(x),
                                   .expected = to_string(floating),
                                   .got = std::string(name_of(x.dtype())),
                                   .fix = "Cast it first."});
  }
  if (2 * options.padding.rows() > kernel.rows() ||
      2 * options.padding.columns() > kernel.columns())
    throw_padding("avg_pool2d", kernel.dims(), options.padding.dims());
  const int64_t channels = x.shape()[1];
  const auto total = [&](const Tensor& images, int64_t groups) {
    const Tensor each = ones({groups, 1, kernel.rows(), kernel.columns()}, x.dtype());
    return conv2d(
        images, each,
        {.stride = options.stride.value_or(kernel), .padding = options.padding, .groups = groups});
  };
  const bool is_padded = options.padding.rows() > 0 || options.padding.columns() > 0;
  if (!options.counts_padding && is_padded) {
    const Tensor count = total(ones({1, 1, x.shape()[2], x.shape()[3]}, x.dtype()), 1);
    return total(x, channels) / count;
  }
  return total(x, channels) / static_cast<double>(kernel.rows() * kernel.columns());
}

std::span<const Op* const> pool_ops() {
  static constexpr auto ops = std::to_array<const Op*>({&window_max_op, &window_max_input_op});
  return ops;
}

}  // namespace nitinol
