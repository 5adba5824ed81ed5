// Three ops: the convolution, and its gradients for the image and for the weight. Each is linear in
// both operands, so that the gradients of each are the other two.
//
// Images are [n, h, w, c] here and row-major; the public functions permute.
#include "eager/ops/conv.h"

#include "eager/apply.h"
#include "eager/channels_last.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/family.h"
#include "eager/ops/windows.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <array>
#include <string>

namespace nitinol {
namespace {

constexpr std::array<std::string_view, 4> conv_attrs = {"stride", "padding", "dilation", "groups"};
constexpr std::array<std::string_view, 5> input_attrs = {"stride", "padding", "dilation", "groups",
                                                         "image"};
constexpr std::array<std::string_view, 5> weight_attrs = {"stride", "padding", "dilation", "groups",
                                                          "kernel"};
constexpr std::size_t last_attr = 4;

/// The first four attributes, and a kernel.
Windows windows_of(const Attrs& attrs, int64_t kernel_height, int64_t kernel_width) {
  return {.kernel = {kernel_height, kernel_width},
          .stride = pair(attrs, 0),
          .padding = pair(attrs, 1),
          .dilation = pair(attrs, 2),
          .groups = attr<int64_t>(attrs, 3)};
}

Windows checked_windows(const Op& op, const Attrs& attrs, int64_t kernel_height,
                        int64_t kernel_width) {
  checked_pair(op.name, "stride", attr<Dims>(attrs, 0), 1);
  checked_pair(op.name, "padding", attr<Dims>(attrs, 1), 0);
  checked_pair(op.name, "dilation", attr<Dims>(attrs, 2), 1);
  const auto groups = attr<int64_t>(attrs, 3);
  if (groups >= 1 && kernel_height >= 1 && kernel_width >= 1)
    return windows_of(attrs, kernel_height, kernel_width);
  throw Error(ErrorKind::shape,
              {.where = std::string(op.name),
               .what = fmt::format("{} groups and a kernel of {} by {}", groups, kernel_height,
                                   kernel_width),
               .expected = "at least 1 of each",
               .got = fmt::format("{}, {} by {}", groups, kernel_height, kernel_width),
               .fix = "Check the options and the weight's last two axes."});
}

/// What is common to the three: dtypes, ranks and the device.
Spec result_of(const Op& op, Inputs inputs) {
  for (const Tensor* input : inputs) {
    check_dtype(op, *input);
    check_images(op.name, *input, "(images [n, h, w, c], weight [out, in / groups, kh, kw])");
  }
  Spec spec = inputs[0]->spec();
  spec.is_weak = false;
  spec.device = common_device(op, inputs);
  if (inputs[1]->dtype() == spec.dtype) return spec;
  throw Error(ErrorKind::dtype,
              {.where = std::string(op.name),
               .what = fmt::format("{} with {}", describe(*inputs[0]), describe(*inputs[1])),
               .expected = "one dtype",
               .got = "two",
               .fix = "Cast one of them."});
}

[[noreturn]] void throw_channels(const Op& op, const Tensor& x, const Tensor& weight,
                                 int64_t expected, int64_t got, std::string_view fix) {
  throw Error(ErrorKind::shape, {.where = std::string(op.name),
                                 .what = fmt::format("channels of {} (in the order [n, h, w, c]) "
                                                     "and weight {}",
                                                     describe(x), describe(weight)),
                                 .expected = fmt::format("{} channels", expected),
                                 .got = fmt::format("{}", got),
                                 .fix = std::string(fix)});
}

void check_groups(const Op& op, int64_t channels, int64_t groups) {
  if (channels % groups == 0) return;
  throw Error(ErrorKind::shape, {.where = std::string(op.name),
                                 .what = fmt::format("{} channels in {} groups", channels, groups),
                                 .expected = "a number of groups that divides the channels",
                                 .got = fmt::format("{}", groups),
                                 .fix = "Check the groups and the weight's first axis."});
}

/// The other image operand must be of the size that the windows give.
void check_result_size(const Op& op, int64_t batch, const std::array<int64_t, 2>& size,
                       const Shape& images) {
  if (images[0] == batch && images[1] == size[0] && images[2] == size[1]) return;
  throw Error(ErrorKind::shape,
              {.where = std::string(op.name),
               .what = "results of another size than the windows give",
               .expected = fmt::format("{} of {} by {}", batch, size[0], size[1]),
               .got = fmt::format("{} of {} by {}", images[0], images[1], images[2]),
               .fix = {}});
}

Spec infer_conv2d(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = result_of(op, inputs);
  const Shape &x = inputs[0]->shape(), &weight = inputs[1]->shape();
  const Windows windows = checked_windows(op, attrs, weight[2], weight[3]);
  if (x[3] != weight[1] * windows.groups) {
    throw_channels(op, *inputs[0], *inputs[1], weight[1] * windows.groups, x[3],
                   "The weight's second axis is the input's channels by the groups.");
  }
  check_groups(op, weight[0], windows.groups);
  const std::array<int64_t, 2> size = count_windows(op.name, windows, x[1], x[2]);
  spec.shape = {x[0], size[0], size[1], weight[0]};
  return spec;
}

Spec infer_input(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = result_of(op, inputs);
  const Shape &y = inputs[0]->shape(), &weight = inputs[1]->shape();
  const Windows windows = checked_windows(op, attrs, weight[2], weight[3]);
  if (y[3] != weight[0])
    throw_channels(op, *inputs[0], *inputs[1], weight[0], y[3], "The weight's first axis.");
  check_groups(op, weight[0], windows.groups);
  const std::array<int64_t, 2> image =
      checked_pair(op.name, "image", attr<Dims>(attrs, last_attr), 1);
  check_result_size(op, y[0], count_windows(op.name, windows, image[0], image[1]), y);
  spec.shape = {y[0], image[0], image[1], weight[1] * windows.groups};
  check_sizes(op, spec.shape);
  return spec;
}

Spec infer_weight(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = result_of(op, inputs);
  const Shape &x = inputs[0]->shape(), &y = inputs[1]->shape();
  const std::array<int64_t, 2> kernel =
      checked_pair(op.name, "kernel", attr<Dims>(attrs, last_attr), 1);
  const Windows windows = checked_windows(op, attrs, kernel[0], kernel[1]);
  check_groups(op, x[3], windows.groups);
  check_groups(op, y[3], windows.groups);
  check_result_size(op, x[0], count_windows(op.name, windows, x[1], x[2]), y);
  spec.shape = {y[3], x[3] / windows.groups, kernel[0], kernel[1]};
  check_sizes(op, spec.shape);
  return spec;
}

// ---- the ops, and how rules apply them

Tensor convolve(const Tensor& x, const Tensor& weight, const Attrs& attrs);
Tensor input_gradient(const Tensor& y, const Tensor& weight, const Attrs& attrs, const Shape& x);
Tensor weight_gradient(const Tensor& x, const Tensor& y, const Attrs& attrs, const Shape& weight);

Tensor conv2d_rule(const GradientCall& c, int k) {
  return k == 0 ? input_gradient(c.gradient, c.inputs[1], c.attrs, c.input_specs[0].shape)
                : weight_gradient(c.inputs[0], c.gradient, c.attrs, c.input_specs[1].shape);
}

Tensor input_rule(const GradientCall& c, int k) {
  return k == 0 ? convolve(c.gradient, c.inputs[1], c.attrs)
                : weight_gradient(c.gradient, c.inputs[0], c.attrs, c.input_specs[1].shape);
}

Tensor weight_rule(const GradientCall& c, int k) {
  return k == 0 ? input_gradient(c.inputs[1], c.gradient, c.attrs, c.input_specs[0].shape)
                : convolve(c.inputs[0], c.gradient, c.attrs);
}

LibraryCall call_conv2d(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  const Shape& weight = inputs[1]->shape();
  return windowed_call(LibraryCall::Kind::conv2d, windows_of(attrs, weight[2], weight[3]), inputs,
                       spec);
}

LibraryCall call_input(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  const Shape& weight = inputs[1]->shape();
  return windowed_call(LibraryCall::Kind::conv2d_input, windows_of(attrs, weight[2], weight[3]),
                       inputs, spec);
}

LibraryCall call_weight(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  return windowed_call(LibraryCall::Kind::conv2d_weight,
                       windows_of(attrs, spec.shape[2], spec.shape[3]), inputs, spec);
}

constexpr auto convolutions = family({
    {.name = "conv2d",
     .kind = OpKind::library,
     .arity = 2,
     .accepts = numeric,
     .attr_names = conv_attrs,
     .infer = infer_conv2d,
     .call = call_conv2d,
     .gradient = {.rule = conv2d_rule, .looks_at_inputs = 0b11},
     .summary = "Convolution of images [n, h, w, c]."},
    {.name = "conv2d_input",
     .kind = OpKind::library,
     .arity = 2,
     .accepts = numeric,
     .attr_names = input_attrs,
     .infer = infer_input,
     .call = call_input,
     .gradient = {.rule = input_rule, .looks_at_inputs = 0b11},
     .summary = "The gradient of conv2d for its images: a transposed convolution."},
    {.name = "conv2d_weight",
     .kind = OpKind::library,
     .arity = 2,
     .accepts = numeric,
     .attr_names = weight_attrs,
     .infer = infer_weight,
     .call = call_weight,
     .gradient = {.rule = weight_rule, .looks_at_inputs = 0b11},
     .summary = "The gradient of conv2d for its weight."},
});

/// The attributes that the three have in common, and perhaps one more.
Attrs common_attrs(const Attrs& attrs) {
  return {attrs.begin(), attrs.begin() + last_attr};
}

Tensor convolve(const Tensor& x, const Tensor& weight, const Attrs& attrs) {
  const Tensor images = row_major(x);
  return apply(convolutions["conv2d"], {&images, &weight}, common_attrs(attrs));
}

Tensor input_gradient(const Tensor& y, const Tensor& weight, const Attrs& attrs, const Shape& x) {
  const Tensor images = row_major(y);
  Attrs all = common_attrs(attrs);
  all.emplace_back(Dims{x[1], x[2]});
  return apply(convolutions["conv2d_input"], {&images, &weight}, all);
}

Tensor weight_gradient(const Tensor& x, const Tensor& y, const Attrs& attrs, const Shape& weight) {
  const Tensor left = row_major(x);
  const Tensor right = row_major(y);
  Attrs all = common_attrs(attrs);
  all.emplace_back(Dims{weight[2], weight[3]});
  return apply(convolutions["conv2d_weight"], {&left, &right}, all);
}

/// conv2d with images [n, h, w, out] as the result.
Tensor last_conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options) {
  check_images("conv2d", x, "[n, c, h, w]");
  check_images("conv2d", weight, "[out, in / groups, kh, kw]");
  const int64_t channels = weight.shape()[1] * options.groups;
  if (x.shape()[1] != channels) {
    throw Error(ErrorKind::shape,
                {.where = "conv2d",
                 .what = fmt::format("channels of {} and of weight {} in {} groups", describe(x),
                                     describe(weight), options.groups),
                 .expected = fmt::format("x.shape[1] == {}", channels),
                 .got = fmt::format("{}", x.shape()[1]),
                 .fix = "Images are [n, c, h, w], weights [out, c / groups, kh, kw]."});
  }
  const DType dtype = promote("conv2d", x.dtype(), weight.dtype());
  return convolve(
      cast(channels_last(x), dtype), cast(weight, dtype),
      {options.stride.dims(), options.padding.dims(), options.dilation.dims(), options.groups});
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options) {
  return channels_first(last_conv2d(x, weight, options));
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  const Tensor y = last_conv2d(x, weight, options);
  if (bias.shape() != Shape{y.shape()[3]}) {
    throw Error(ErrorKind::shape, {.where = "conv2d",
                                   .what = "the bias is " + describe(bias),
                                   .expected = to_string(Shape{y.shape()[3]}),
                                   .got = to_string(bias.shape()),
                                   .fix = "It has a number for each channel of the result."});
  }
  return channels_first(y + bias);
}

std::span<const Op> conv_ops() {
  return convolutions.ops;
}

}  // namespace nitinol
