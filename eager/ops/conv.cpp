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
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/join.h"
#include "eager/ops/view.h"
#include "eager/ops/windows.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
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
     .precision = Precision::low,
     .attr_names = conv_attrs,
     .infer = infer_conv2d,
     .call = call_conv2d,
     .gradient = {.rule = conv2d_rule, .looks_at_inputs = 0b11},
     .summary = "Convolution of images [n, h, w, c]."},
    {.name = "conv2d_input",
     .kind = OpKind::library,
     .arity = 2,
     .accepts = numeric,
     .precision = Precision::low,
     .attr_names = input_attrs,
     .infer = infer_input,
     .call = call_input,
     .gradient = {.rule = input_rule, .looks_at_inputs = 0b11},
     .summary = "The gradient of conv2d for its images: a transposed convolution."},
    {.name = "conv2d_weight",
     .kind = OpKind::library,
     .arity = 2,
     .accepts = numeric,
     .precision = Precision::low,
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

/// What stands before and behind an axis.
Padding sides_of(const char* where, int64_t size, int64_t kernel, int64_t stride, int64_t dilation,
                 int64_t padding, std::optional<int64_t> after, bool is_same) {
  if (!is_same) return {padding, after.value_or(padding)};
  if (padding != 0 || after || stride < 1) {
    throw Error(ErrorKind::shape, {.where = where,
                                   .what = "padding beside `is_same`, or a stride below 1",
                                   .expected = "padding that is left to `is_same`",
                                   .got = fmt::format("{} and a stride of {}", padding, stride),
                                   .fix = {}});
  }
  const int64_t windows = (size + stride - 1) / stride;
  const int64_t seen = (windows - 1) * stride + dilation * (kernel - 1) + 1;
  const int64_t total = std::max<int64_t>(0, seen - size);
  return {total / 2, total - total / 2};
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
  const DType dtype = product_dtype("conv2d", x.dtype(), weight.dtype());
  const auto sides = [&](int axis, int64_t stride, int64_t dilation, int64_t padding, auto after) {
    return sides_of("conv2d", x.shape()[axis], weight.shape()[axis], stride, dilation, padding,
                    after, options.is_same);
  };
  std::optional<int64_t> below, right;
  if (options.padding_after) {
    below = options.padding_after->rows();
    right = options.padding_after->columns();
  }
  const Padding rows =
      sides(2, options.stride.rows(), options.dilation.rows(), options.padding.rows(), below);
  const Padding columns = sides(3, options.stride.columns(), options.dilation.columns(),
                                options.padding.columns(), right);
  Tensor images = cast(channels_last(x), dtype);
  Pair padding = {rows.before, columns.before};
  if (rows.before != rows.after || columns.before != columns.after) {
    images = pad(images, {{}, rows, columns, {}});
    padding = 0;
  }
  return convolve(images, cast(weight, dtype),
                  {options.stride.dims(), padding.dims(), options.dilation.dims(), options.groups});
}

/// `bias` for each channel of y, along `axis`.
Tensor with_bias(const char* where, const Tensor& y, const Tensor& bias, int axis) {
  const int64_t channels = y.shape()[axis];
  if (bias.shape() != Shape{channels}) {
    throw Error(ErrorKind::shape, {.where = where,
                                   .what = "the bias is " + describe(bias),
                                   .expected = to_string(Shape{channels}),
                                   .got = to_string(bias.shape()),
                                   .fix = "It has a number for each channel of the result."});
  }
  const Tensor added = beside_product(bias, y);
  if (axis == y.rank() - 1) return y + added;
  Shape line = Shape::filled(y.rank(), 1);
  line[axis] = channels;
  return y + reshape(added, line);
}

void check_rank(const char* where, const Tensor& x, const Tensor& weight, int rank,
                const char* expected) {
  if (x.rank() == rank && weight.rank() == rank) return;
  throw Error(ErrorKind::shape,
              {.where = where,
               .what = fmt::format("the input {} and the weight {}", describe(x), describe(weight)),
               .expected = expected,
               .got = fmt::format("{} and {} axes", x.rank(), weight.rank()),
               .fix = "A single sample needs unsqueeze(x, 0)."});
}

/// One number for all three axes, or three; at least `least`.
std::array<int64_t, 3> three(const char* where, const char* name, const Dims& given,
                             int64_t least) {
  if (given.size() == 1 || given.size() == 3) {
    const std::array<int64_t, 3> all = {given[0], given[given.size() == 1 ? 0 : 1],
                                        given[given.size() == 1 ? 0 : 2]};
    if (std::ranges::all_of(all, [least](int64_t n) { return n >= least; })) return all;
  }
  throw Error(ErrorKind::shape, {.where = where,
                                 .what = fmt::format("the argument `{}`", name),
                                 .expected = fmt::format("one number or three, at least {}", least),
                                 .got = to_string(given),
                                 .fix = {}});
}

/// [n, c, d, h, w] as images [n * d, c, h, w], and back.
Tensor as_images(const Tensor& x) {
  const Shape& s = x.shape();
  return reshape(transpose(x, 1, 2), {s[0] * s[2], s[1], s[3], s[4]});
}
Tensor as_volumes(const Tensor& images, int64_t batch) {
  const Shape& s = images.shape();
  return transpose(reshape(images, {batch, s[0] / batch, s[1], s[2], s[3]}), 1, 2);
}

/// conv_transpose2d with images [n, oh, ow, out] as the result.
Tensor last_transpose2d(const char* where, const Tensor& x, const Tensor& weight,
                        const ConvTranspose2dOptions& options) {
  check_images(where, x, "[n, c, h, w]");
  check_images(where, weight, "[c, out / groups, kh, kw]");
  if (x.shape()[1] != weight.shape()[0]) {
    throw Error(
        ErrorKind::shape,
        {.where = where,
         .what = fmt::format("channels of {} and of weight {}", describe(x), describe(weight)),
         .expected = fmt::format("x.shape[1] == {}", weight.shape()[0]),
         .got = fmt::format("{}", x.shape()[1]),
         .fix = "Weights of transposed convolutions are [in, out / groups, ...]."});
  }
  const DType dtype = product_dtype(where, x.dtype(), weight.dtype());
  const auto size = [&](int axis, int64_t stride, int64_t padding, int64_t more, int64_t dilation) {
    if (more < 0 || (more > 0 && more >= std::max(stride, dilation))) {
      throw Error(ErrorKind::shape, {.where = where,
                                     .what = "the argument `output_padding`",
                                     .expected = "less than the stride or the dilation",
                                     .got = fmt::format("{}", more),
                                     .fix = {}});
    }
    return (x.shape()[axis] - 1) * stride - 2 * padding + dilation * (weight.shape()[axis] - 1) +
           more + 1;
  };
  const Pair &stride = options.stride, &padding = options.padding, &more = options.output_padding,
             &dilation = options.dilation;
  const Shape image = {
      x.shape()[0], size(2, stride.rows(), padding.rows(), more.rows(), dilation.rows()),
      size(3, stride.columns(), padding.columns(), more.columns(), dilation.columns())};
  // Of which no convolution gives x: another window would fit. All windows, then the part.
  const bool is_longer = more.rows() >= stride.rows() || more.columns() >= stride.columns();
  if (is_longer && image[1] > 0 && image[2] > 0) {
    ConvTranspose2dOptions whole = options;
    whole.padding = whole.output_padding = 0;
    const Tensor all = pad(last_transpose2d(where, x, weight, whole),
                           {{}, {0, more.rows()}, {0, more.columns()}, {}});
    const Tensor rows = slice(all, 1, {padding.rows(), padding.rows() + image[1]});
    return slice(rows, 2, {padding.columns(), padding.columns() + image[2]});
  }
  return input_gradient(cast(channels_last(x), dtype), cast(weight, dtype),
                        {stride.dims(), padding.dims(), dilation.dims(), options.groups}, image);
}

}  // namespace

Tensor conv2d(const Tensor& x, const Tensor& weight, const Conv2dOptions& options) {
  return channels_first(last_conv2d(x, weight, options));
}

Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options) {
  return channels_first(with_bias("conv2d", last_conv2d(x, weight, options), bias, 3));
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Conv1dOptions& o) {
  check_rank("conv1d", x, weight, 3, "[n, c, l] and a weight [out, c / groups, k]");
  const Conv2dOptions options = {
      .stride = {1, o.stride},
      .padding = {0, o.padding},
      .dilation = {1, o.dilation},
      .groups = o.groups,
      .padding_after = o.padding_after ? std::optional(Pair(0, *o.padding_after)) : std::nullopt,
      .is_same = o.is_same};
  return squeeze(conv2d(unsqueeze(x, 2), unsqueeze(weight, 2), options), 2);
}

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv1dOptions& options) {
  return with_bias("conv1d", conv1d(x, weight, options), bias, 1);
}

Tensor conv3d(const Tensor& x, const Tensor& weight, const Conv3dOptions& o) {
  check_rank("conv3d", x, weight, 5, "[n, c, d, h, w] and a weight [out, c / groups, kd, kh, kw]");
  const auto stride = three("conv3d", "stride", o.stride, 1);
  const auto padding = three("conv3d", "padding", o.padding, 0);
  const auto dilation = three("conv3d", "dilation", o.dilation, 1);
  std::optional<int64_t> behind;
  std::optional<Pair> around;
  if (o.padding_after) {
    const auto after = three("conv3d", "padding_after", *o.padding_after, 0);
    behind = after[0];
    around = Pair(after[1], after[2]);
  }
  const int64_t layers = weight.shape()[2];
  const Padding sides = sides_of("conv3d", x.shape()[2], layers, stride[0], dilation[0], padding[0],
                                 behind, o.is_same);
  const int64_t depth = x.shape()[2] + sides.before + sides.after;
  const int64_t rest = depth - dilation[0] * (layers - 1) - 1;
  if (layers < 1 || rest < 0) {
    throw Error(ErrorKind::shape,
                {.where = "conv3d",
                 .what = fmt::format("{} with the weight {}", describe(x), describe(weight)),
                 .expected = "a window that fits in the depth",
                 .got = fmt::format("a depth of {}", depth),
                 .fix = "Add padding, or use a smaller kernel."});
  }
  const Conv2dOptions flat = {.stride = {stride[1], stride[2]},
                              .padding = {padding[1], padding[2]},
                              .dilation = {dilation[1], dilation[2]},
                              .groups = o.groups,
                              .padding_after = around,
                              .is_same = o.is_same};
  const bool is_padded = sides.before != 0 || sides.after != 0;
  const Tensor padded = is_padded ? pad(x, {{}, {}, sides, {}, {}}) : x;
  const int64_t windows = rest / stride[0] + 1;
  Tensor sum;
  for (int64_t k = 0; k < layers; ++k) {
    const int64_t from = k * dilation[0];
    const Tensor seen = slice(padded, 2, {from, from + (windows - 1) * stride[0] + 1, stride[0]});
    const Tensor part = conv2d(as_images(seen), squeeze(slice(weight, 2, {k, k + 1}), 2), flat);
    sum = sum.is_defined() ? sum + part : part;
  }
  return as_volumes(sum, x.shape()[0]);
}

Tensor conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv3dOptions& options) {
  return with_bias("conv3d", conv3d(x, weight, options), bias, 1);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const ConvTranspose1dOptions& o) {
  check_rank("conv_transpose1d", x, weight, 3, "[n, c, l] and a weight [c, out / groups, k]");
  const ConvTranspose2dOptions options = {.stride = {1, o.stride},
                                          .padding = {0, o.padding},
                                          .output_padding = {0, o.output_padding},
                                          .dilation = {1, o.dilation},
                                          .groups = o.groups};
  const Tensor y =
      last_transpose2d("conv_transpose1d", unsqueeze(x, 2), unsqueeze(weight, 2), options);
  return squeeze(channels_first(y), 2);
}

Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose1dOptions& options) {
  return with_bias("conv_transpose1d", conv_transpose1d(x, weight, options), bias, 1);
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight,
                        const ConvTranspose2dOptions& options) {
  return channels_first(last_transpose2d("conv_transpose2d", x, weight, options));
}

Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose2dOptions& options) {
  const Tensor y = last_transpose2d("conv_transpose2d", x, weight, options);
  return channels_first(with_bias("conv_transpose2d", y, bias, 3));
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const ConvTranspose3dOptions& o) {
  const char* const name = "conv_transpose3d";
  check_rank(name, x, weight, 5, "[n, c, d, h, w] and a weight [c, out / groups, kd, kh, kw]");
  const auto stride = three(name, "stride", o.stride, 1);
  const auto padding = three(name, "padding", o.padding, 0);
  const auto more = three(name, "output_padding", o.output_padding, 0);
  const auto dilation = three(name, "dilation", o.dilation, 1);
  const ConvTranspose2dOptions flat = {.stride = {stride[1], stride[2]},
                                       .padding = {padding[1], padding[2]},
                                       .output_padding = {more[1], more[2]},
                                       .dilation = {dilation[1], dilation[2]},
                                       .groups = o.groups};
  const int64_t layers = weight.shape()[2];
  const int64_t whole = (x.shape()[2] - 1) * stride[0] + dilation[0] * (layers - 1) + more[0] + 1;
  if (layers < 1 || whole <= 2 * padding[0] || x.shape()[2] < 1 ||
      (more[0] > 0 && more[0] >= std::max(stride[0], dilation[0]))) {
    throw Error(ErrorKind::shape,
                {.where = name,
                 .what = fmt::format("{} with the weight {}", describe(x), describe(weight)),
                 .expected = "a result with a depth, and output_padding less than the stride or "
                             "the dilation",
                 .got = fmt::format("a depth of {}", whole - 2 * padding[0]),
                 .fix = {}});
  }
  Tensor sum;
  for (int64_t k = 0; k < layers; ++k) {
    const Tensor part =
        as_volumes(conv_transpose2d(as_images(x), squeeze(slice(weight, 2, {k, k + 1}), 2), flat),
                   x.shape()[0]);
    Shape shape = part.shape();
    shape[2] = whole;
    const Tensor nothing = expand(zeros({}, part.dtype(), part.device()), shape);
    const Tensor placed =
        place(nothing, part, {0, 0, k * dilation[0], 0, 0}, part.shape(), {1, 1, stride[0], 1, 1});
    sum = sum.is_defined() ? sum + placed : placed;
  }
  return slice(sum, 2, {padding[0], whole - padding[0]});
}

Tensor conv_transpose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                        const ConvTranspose3dOptions& options) {
  return with_bias("conv_transpose3d", conv_transpose3d(x, weight, options), bias, 1);
}

std::span<const Op> conv_ops() {
  return convolutions.ops;
}

}  // namespace nitinol
