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
#include "eager/ops/index.h"
#include "eager/ops/join.h"
#include "eager/ops/rearrange.h"
#include "eager/ops/scatter.h"
#include "eager/ops/view.h"
#include "eager/ops/windows.h"

#include <fmt/format.h>

#include <algorithm>
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

/// How windows lie along an axis, with those that reach beyond its end.
struct Line {
  int64_t kernel, stride, padding, dilation;
  /// How many elements beyond `padding` the last window reaches, of `size` elements.
  [[nodiscard]] int64_t beyond(int64_t size) const {
    const int64_t whole = size + 2 * padding - dilation * (kernel - 1) - 1;
    if (whole < 0 || stride < 1) return 0;
    int64_t windows = (whole + stride - 1) / stride + 1;
    if ((windows - 1) * stride >= size + padding) --windows;  // it would begin behind the end
    return std::max<int64_t>(0, (windows - 1) * stride - whole);
  }
};

struct Lines {
  Line rows, columns;
};
Lines lines_of(const Pair& kernel, const Pair& stride, const Pair& padding, const Pair& dilation) {
  return {{kernel.rows(), stride.rows(), padding.rows(), dilation.rows()},
          {kernel.columns(), stride.columns(), padding.columns(), dilation.columns()}};
}

/// Images [n, h, w, c] with `value` around them: all padding, and what windows beyond it need.
Tensor surrounded(const Tensor& images, const Lines& lines, bool is_ceil, const Argument& value) {
  const auto sides = [is_ceil](const Line& line, int64_t size) {
    return Padding{line.padding, line.padding + (is_ceil ? line.beyond(size) : 0)};
  };
  const Padding rows = sides(lines.rows, images.shape()[1]);
  const Padding columns = sides(lines.columns, images.shape()[2]);
  if (rows.before + rows.after + columns.before + columns.after == 0) return images;
  return pad(images, {{}, rows, columns, {}}, value);
}

/// What max_pool2d sees: images [n, h, w, c] whose windows lie as `attrs` say. `border` stands
/// around them where their own padding is not enough.
struct Seen {
  Lines lines;
  bool is_ceil, is_dilated;
  Attrs attrs;

  [[nodiscard]] bool is_plain() const { return !is_ceil && !is_dilated; }
  [[nodiscard]] Tensor operator()(const Tensor& images, const Argument& border) const {
    if (is_plain()) return row_major(images);
    const Tensor whole = surrounded(images, lines, is_ceil, border);
    if (!is_dilated) return row_major(whole);
    // Windows side by side, each with the elements that it has.
    const auto spread = [](const Tensor& y, int axis, const Line& line) {
      const int64_t count =
          (y.shape()[axis] - line.dilation * (line.kernel - 1) - 1) / line.stride + 1;
      const Tensor first = unsqueeze(arange(count, i64, y.device()) * line.stride, 1);
      const Tensor taps = arange(line.kernel, i64, y.device()) * line.dilation;
      return take(y, flatten(first + taps), axis);
    };
    return row_major(spread(spread(whole, 1, lines.rows), 2, lines.columns));
  }
};

Seen seen_of(std::string_view where, const Tensor& x, const Pair& kernel,
             const MaxPool2dOptions& options) {
  const Pair stride = options.stride.value_or(kernel);
  Seen seen = {.lines = lines_of(kernel, stride, options.padding, options.dilation),
               .is_ceil = options.is_ceil,
               .is_dilated = options.dilation.rows() != 1 || options.dilation.columns() != 1,
               .attrs = {kernel.dims(), stride.dims(), options.padding.dims()}};
  checked_pair(where, "dilation", options.dilation.dims(), 1);
  checked_pair(where, "kernel", kernel.dims(), 1);
  const auto spans = [](const Line& line) { return line.dilation * (line.kernel - 1) + 1; };
  // The padding is at most half the kernel, and the windows with their gaps fit.
  checked_size(where, seen.attrs, x.shape()[2] + spans(seen.lines.rows),
               x.shape()[3] + spans(seen.lines.columns));
  Windows gaps = windows_of(seen.attrs);
  gaps.dilation = {options.dilation.rows(), options.dilation.columns()};
  static_cast<void>(count_windows(where, gaps, x.shape()[2], x.shape()[3]));
  if (!seen.is_plain()) {
    check_dtype(where, floating, x);
    seen.attrs[2] = Dims{0, 0};
  }
  if (seen.is_dilated) seen.attrs[1] = kernel.dims();
  return seen;
}

constexpr double below_all = -std::numeric_limits<double>::infinity();

}  // namespace

Tensor max_pool2d(const Tensor& x, Pair kernel, const MaxPool2dOptions& options) {
  check_pooling("max_pool2d", numeric, x);
  const Seen seen = seen_of("max_pool2d", x, kernel, options);
  const Tensor images = seen(channels_last(x), below_all);
  return channels_first(apply(pooling["window_max"], {&images, &images}, seen.attrs));
}

MaxPooled max_pool2d_with_indices(const Tensor& x, Pair kernel, const MaxPool2dOptions& options) {
  check_pooling("max_pool2d_with_indices", floating, x);
  const Seen seen = seen_of("max_pool2d_with_indices", x, kernel, options);
  const Tensor images = seen(channels_last(x), below_all);
  const Shape shape = channels_last(x).shape();
  const Tensor numbers =
      reshape(arange(shape[1] * shape[2], f64, x.device()), {1, shape[1], shape[2], 1});
  const Tensor places = seen(expand(numbers, shape), 0.0);
  const Tensor found = picked(cast(images, f64), places, seen.attrs);
  return {channels_first(apply(pooling["window_max"], {&images, &images}, seen.attrs)),
          cast(channels_first(found), i64)};
}

Tensor max_unpool2d(const Tensor& values, const Tensor& indices, Pair size) {
  check_images("max_unpool2d", values, "[n, c, h, w]");
  if (indices.shape() != values.shape() || size.rows() < 1 || size.columns() < 1) {
    throw Error(ErrorKind::shape,
                {.where = "max_unpool2d",
                 .what = fmt::format("values {}, indices {} and the size {}", describe(values),
                                     describe(indices), to_string(size.dims())),
                 .expected = "an index for each value, and a size of at least 1 by 1",
                 .got = to_string(indices.shape()),
                 .fix = "They are what max_pool2d_with_indices() gives."});
  }
  const Shape& s = values.shape();
  const int64_t pixels = size.rows() * size.columns();
  const Tensor empty = zeros({s[0], s[1], pixels}, values.dtype(), values.device());
  const Shape flat = {s[0], s[1], s[2] * s[3]};
  const Tensor placed = scatter_along(empty, 2, reshape(indices, flat), reshape(values, flat));
  return reshape(placed, {s[0], s[1], size.rows(), size.columns()});
}

Tensor avg_pool2d(const Tensor& x, Pair kernel, const AvgPool2dOptions& options) {
  check_pooling("avg_pool2d", floating, x);
  const Pair stride = options.stride.value_or(kernel);
  checked_size("avg_pool2d", {kernel.dims(), stride.dims(), options.padding.dims()}, x.shape()[2],
               x.shape()[3]);
  const int64_t channels = x.shape()[1];
  const auto total = [&](const Tensor& images, int64_t groups, const Pair& padding) {
    const Tensor each = ones({groups, 1, kernel.rows(), kernel.columns()}, x.dtype(), x.device());
    return conv2d(images, each, {.stride = stride, .padding = padding, .groups = groups});
  };
  const int64_t down = options.padding.rows();
  const int64_t across = options.padding.columns();
  const Lines lines = lines_of(kernel, stride, options.padding, 1);
  const bool reaches_beyond =
      options.is_ceil && lines.rows.beyond(x.shape()[2]) + lines.columns.beyond(x.shape()[3]) > 0;
  if (reaches_beyond) {
    // What counts are ones, in the image or in its padding; beyond there are none.
    const bool counts_all = options.counts_padding;
    Tensor inside = ones({1, x.shape()[2], x.shape()[3], 1}, x.dtype(), x.device());
    if (counts_all) inside = pad(inside, {{}, {down, down}, {across, across}, {}}, 1);
    const Lines left = counts_all ? lines_of(kernel, stride, 0, 1) : lines;
    Tensor all = surrounded(channels_last(x), lines, true, 0);
    Tensor counted = surrounded(inside, left, false, 0);
    counted = pad(counted,
                  {{},
                   {0, all.shape()[1] - counted.shape()[1]},
                   {0, all.shape()[2] - counted.shape()[2]},
                   {}},
                  0);
    return total(channels_first(all), channels, 0) / total(channels_first(counted), 1, 0);
  }
  if (!options.counts_padding && down + across > 0) {
    const Tensor image = ones({1, 1, x.shape()[2], x.shape()[3]}, x.dtype(), x.device());
    return total(x, channels, options.padding) / total(image, 1, options.padding);
  }
  return total(x, channels, options.padding) /
         static_cast<double>(kernel.rows() * kernel.columns());
}

namespace {

/// One number for all axes, or one for each.
Dims for_each_axis(const char* where, const char* name, const Dims& given, int axes) {
  if (given.size() == axes) return given;
  if (given.size() == 1) return Dims::filled(axes, given[0]);
  throw Error(ErrorKind::shape, {.where = where,
                                 .what = fmt::format("the argument `{}`", name),
                                 .expected = fmt::format("one number, or {}", axes),
                                 .got = to_string(given),
                                 .fix = {}});
}

/// Options of a pool along `axes` axes; options of avg_pool2d have no dilation.
struct Axial {
  Dims kernel, stride, padding, dilation;
};
template <class Options>
Axial axial(const char* where, const Tensor& x, const Dims& kernel, const Options& options,
            int axes) {
  if (x.rank() != axes + 2) {
    throw Error(ErrorKind::shape, {.where = where,
                                   .what = "the input is " + describe(x),
                                   .expected = axes == 1 ? "[n, c, l]" : "[n, c, d, h, w]",
                                   .got = to_string(x.shape()),
                                   .fix = "A single sample needs unsqueeze(x, 0)."});
  }
  Axial all;
  all.kernel = for_each_axis(where, "kernel", kernel, axes);
  all.stride = for_each_axis(where, "stride", options.stride.value_or(kernel), axes);
  all.padding = for_each_axis(where, "padding", options.padding, axes);
  all.dilation = Dims::filled(axes, 1);
  if constexpr (requires { options.dilation; })
    all.dilation = for_each_axis(where, "dilation", options.dilation, axes);
  return all;
}

Tensor pooled_by(const Tensor& x, const Pair& kernel, const Pair& stride, const Pair& padding,
                 const Pair& dilation, const MaxPoolOptions& o) {
  return max_pool2d(
      x, kernel,
      {.stride = stride, .padding = padding, .dilation = dilation, .is_ceil = o.is_ceil});
}
Tensor pooled_by(const Tensor& x, const Pair& kernel, const Pair& stride, const Pair& padding,
                 const Pair&, const AvgPoolOptions& o) {
  return avg_pool2d(x, kernel,
                    {.stride = stride,
                     .padding = padding,
                     .counts_padding = o.counts_padding,
                     .is_ceil = o.is_ceil});
}

template <class Options>
Tensor pool1d(const char* where, const Tensor& x, Integer kernel, const Options& options) {
  const Axial a = axial(where, x, {kernel}, options, 1);
  return squeeze(pooled_by(unsqueeze(x, 2), {1, a.kernel[0]}, {1, a.stride[0]}, {0, a.padding[0]},
                           {1, a.dilation[0]}, options),
                 2);
}

/// Windows of volumes are windows of images, and of those along the depth.
template <class Options>
Tensor pool3d(const char* where, const Tensor& x, const Dims& kernel, const Options& options) {
  const Axial a = axial(where, x, kernel, options, 3);
  const Shape& s = x.shape();
  const Tensor flat =
      pooled_by(reshape(x, {s[0], s[1] * s[2], s[3], s[4]}), {a.kernel[1], a.kernel[2]},
                {a.stride[1], a.stride[2]}, {a.padding[1], a.padding[2]},
                {a.dilation[1], a.dilation[2]}, options);
  const int64_t rows = flat.shape()[2];
  const int64_t columns = flat.shape()[3];
  const Tensor deep = pooled_by(reshape(flat, {s[0], s[1], s[2], rows * columns}), {a.kernel[0], 1},
                                {a.stride[0], 1}, {a.padding[0], 0}, {a.dilation[0], 1}, options);
  return reshape(deep, {s[0], s[1], deep.shape()[2], rows, columns});
}

}  // namespace

Tensor max_pool1d(const Tensor& x, Integer kernel, const MaxPoolOptions& options) {
  return pool1d("max_pool1d", x, kernel, options);
}

Tensor avg_pool1d(const Tensor& x, Integer kernel, const AvgPoolOptions& options) {
  return pool1d("avg_pool1d", x, kernel, options);
}

Tensor max_pool3d(const Tensor& x, const Dims& kernel, const MaxPoolOptions& options) {
  return pool3d("max_pool3d", x, kernel, options);
}

Tensor avg_pool3d(const Tensor& x, const Dims& kernel, const AvgPoolOptions& options) {
  return pool3d("avg_pool3d", x, kernel, options);
}

std::span<const Op> pool_ops() {
  return pooling.ops;
}

}  // namespace nitinol
