#include "eager/ops/view.h"

#include "eager/all_ops.h"
#include "eager/apply.h"
#include "eager/infer.h"
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace nitinol {
namespace {

// ---- reshape

constexpr std::array<std::string_view, 1> shape_attrs = {"shape"};

Spec infer_reshape(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = inputs[0]->spec();
  spec.shape = attr<Dims>(attrs, 0);
  check_sizes(op, spec.shape);
  if (element_count(spec.shape) == inputs[0]->size()) return spec;
  throw Error(ErrorKind::shape,
              {.where = std::string(op.name),
               .what = fmt::format("{} as shape {}", describe(*inputs[0]), to_string(spec.shape)),
               .expected = fmt::format("a shape of {} elements", inputs[0]->size()),
               .got = fmt::format("{}", element_count(spec.shape)),
               .fix = "One size may be -1: it is computed."});
}

// Runs of old dimensions that are contiguous among themselves are one dimension, which may be cut
// anywhere. So both shapes are walked from the end: new sizes are split off the present run, and
// when it is used up the next run begins. If a new size crosses the border of a run, strides cannot
// express it.
ViewMap view_reshape(const Spec& input, const Strides& strides, const Attrs& attrs) {
  const Shape& to = attr<Dims>(attrs, 0);
  ViewMap map = {.is_possible = true, .strides = strides_of(to), .offset = 0};
  if (element_count(input.shape) == 0 || is_contiguous(input.shape, strides)) return map;
  int64_t run = 1;   // elements of the run not yet used
  int64_t step = 1;  // stride of its next piece
  int i = input.shape.size() - 1;
  for (int j = to.size() - 1; j >= 0; --j) {
    if (to[j] == 1) continue;
    while (run == 1) {
      run = input.shape[i];
      step = strides[i];
      for (--i; i >= 0 && run > 1 && (input.shape[i] == 1 || strides[i] == step * run); --i) {
        run *= input.shape[i];
      }
    }
    if (run % to[j] != 0) return {.is_possible = false, .strides = {}, .offset = 0};
    map.strides[j] = step;
    step *= to[j];
    run /= to[j];
  }
  return map;
}

Tensor reshape_rule(const GradientCall& c, int) {
  return reshape(c.gradient, c.input_specs[0].shape);
}

// ---- permute

constexpr std::array<std::string_view, 1> axes_attrs = {"axes"};

Spec infer_permute(const Op& op, Inputs inputs, const Attrs& attrs) {
  const Dims& axes = attr<Dims>(attrs, 0);
  Spec spec = inputs[0]->spec();
  check_permutation(op, axes, spec.shape.size());
  for (int i = 0; i < axes.size(); ++i) {
    spec.shape[i] = inputs[0]->shape()[static_cast<int>(axes[i])];
  }
  return spec;
}

ViewMap view_permute(const Spec&, const Strides& strides, const Attrs& attrs) {
  const Dims& axes = attr<Dims>(attrs, 0);
  ViewMap map = {.is_possible = true, .strides = strides, .offset = 0};
  for (int i = 0; i < axes.size(); ++i) map.strides[i] = strides[static_cast<int>(axes[i])];
  return map;
}

Tensor permute_rule(const GradientCall& c, int) {
  const Dims& axes = attr<Dims>(c.attrs, 0);
  Dims back = axes;
  for (int i = 0; i < axes.size(); ++i) back[static_cast<int>(axes[i])] = i;
  return permute(c.gradient, back);
}

// ---- expand

Spec infer_expand(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = inputs[0]->spec();
  const Shape& to = attr<Dims>(attrs, 0);
  const Shape& from = spec.shape;
  check_sizes(op, to);
  bool fits = from.size() <= to.size();
  for (int i = 1; fits && i <= from.size(); ++i) {
    fits = from[from.size() - i] == 1 || from[from.size() - i] == to[to.size() - i];
  }
  if (!fits) {
    throw Error(ErrorKind::shape,
                {.where = std::string(op.name),
                 .what = fmt::format("{} to shape {}", describe(spec), to_string(to)),
                 .expected = "sizes equal or 1, counted from the last axis",
                 .got = to_string(from),
                 .fix = "Insert axes of size 1 with unsqueeze or reshape."});
  }
  spec.shape = to;
  return spec;
}

ViewMap view_expand(const Spec& input, const Strides& strides, const Attrs& attrs) {
  return {.is_possible = true,
          .strides = broadcast_strides(input.shape, strides, attr<Dims>(attrs, 0)),
          .offset = 0};
}

Tensor expand_rule(const GradientCall& c, int) {
  return c.gradient;  // is summed
}

// ---- slice

constexpr std::array<std::string_view, 3> slice_attrs = {"starts", "sizes", "steps"};

Spec infer_slice(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = inputs[0]->spec();
  check_window(op, spec.shape, attr<Dims>(attrs, 0), attr<Dims>(attrs, 1), attr<Dims>(attrs, 2));
  spec.shape = attr<Dims>(attrs, 1);
  return spec;
}

ViewMap view_slice(const Spec& input, const Strides& strides, const Attrs& attrs) {
  const Dims& starts = attr<Dims>(attrs, 0);
  const Dims& steps = attr<Dims>(attrs, 2);
  ViewMap map = {.is_possible = true, .strides = strides, .offset = 0};
  if (element_count(attr<Dims>(attrs, 1)) == 0) return map;
  for (int i = 0; i < input.shape.size(); ++i) {
    map.strides[i] = strides[i] * steps[i];
    map.offset += strides[i] * starts[i];
  }
  return map;
}

Tensor slice_rule(const GradientCall& c, int) {
  const Spec& input = c.input_specs[0];
  // Of all elements, perhaps backwards: to turn them again is to turn them back.
  if (attr<Dims>(c.attrs, 1) == input.shape)
    return window(c.gradient, attr<Dims>(c.attrs, 0), attr<Dims>(c.attrs, 1),
                  attr<Dims>(c.attrs, 2));
  return place(zeros(input.shape, input.dtype, input.device), c.gradient, attr<Dims>(c.attrs, 0),
               attr<Dims>(c.attrs, 1), attr<Dims>(c.attrs, 2));
}

constexpr auto views = family({
    {.name = "reshape",
     .kind = OpKind::view,
     .attr_names = shape_attrs,
     .infer = infer_reshape,
     .view = view_reshape,
     .gradient = {.rule = reshape_rule},
     .summary = "The elements in row-major order as another shape."},
    {.name = "permute",
     .kind = OpKind::view,
     .attr_names = axes_attrs,
     .infer = infer_permute,
     .view = view_permute,
     .gradient = {.rule = permute_rule},
     .summary = "The axes in another order."},
    {.name = "expand",
     .kind = OpKind::view,
     .attr_names = shape_attrs,
     .infer = infer_expand,
     .view = view_expand,
     .gradient = {.rule = expand_rule},
     .summary = "Sizes 1 and new leading axes repeated."},
    {.name = "slice",
     .kind = OpKind::view,
     .attr_names = slice_attrs,
     .infer = infer_slice,
     .view = view_slice,
     .gradient = {.rule = slice_rule},
     .summary = "Per axis a range of indices with a step."},
});

}  // namespace

IndexRun resolve(const Range& range, int64_t size) {
  if (range.step == 0) {
    throw Error(ErrorKind::value, {.where = "slice",
                                   .what = "a range with step 0",
                                   .expected = "a step other than 0",
                                   .got = "0",
                                   .fix = "Use 1 for every element, -1 for reverse order."});
  }
  const bool forward = range.step > 0;
  const int64_t low = forward ? 0 : -1;
  const int64_t high = forward ? size : size - 1;
  const auto bound = [&](int64_t index, int64_t if_open) {
    if (index == Range::open) return if_open;
    return std::clamp(index < 0 ? index + size : index, low, high);
  };
  const int64_t start = bound(range.start, forward ? low : high);
  const int64_t stop = bound(range.stop, forward ? high : low);
  const int64_t distance = forward ? stop - start : start - stop;
  if (distance <= 0) return {0, 0, range.step};
  const uint64_t step =
      forward ? static_cast<uint64_t>(range.step) : uint64_t{0} - static_cast<uint64_t>(range.step);
  const uint64_t last = (static_cast<uint64_t>(distance) - 1) / step;
  return {start, static_cast<int64_t>(last) + 1, range.step};
}

Tensor reshape(const Tensor& x, const Shape& shape) {
  Shape sizes = shape;
  int64_t known = 1;
  int open = -1;
  for (int i = 0; i < sizes.size(); ++i) {
    const bool is_bad = sizes[i] < -1 || (sizes[i] == -1 && open >= 0);
    if (is_bad) {
      throw Error(ErrorKind::shape, {.where = "reshape",
                                     .what = fmt::format("shape {}", to_string(shape)),
                                     .expected = "sizes of at least 0, and at most one -1",
                                     .got = to_string(shape),
                                     .fix = "Leave at most one size to be computed."});
    }
    if (sizes[i] == -1)
      open = i;
    else
      known *= sizes[i];
  }
  if (open >= 0 && known == 0) {
    throw Error(ErrorKind::shape,
                {.where = "reshape",
                 .what = fmt::format("{} to {}", describe(x), to_string(shape)),
                 .expected = "sizes other than 0 beside the -1",
                 .got = to_string(shape),
                 .fix = "Any size would do for the -1: write the one that you mean."});
  }
  if (open >= 0) sizes[open] = x.size() / known;
  return apply(views["reshape"], {&x}, {sizes});
}

Tensor flatten(const Tensor& x, Integer first_axis, Integer last_axis) {
  const int rank = std::max(x.rank(), 1);
  const int first = normalize_axis("flatten", first_axis, rank);
  const int last = normalize_axis("flatten", last_axis, rank);
  if (last < first) {
    throw Error(ErrorKind::shape,
                {.where = "flatten",
                 .what = fmt::format("axes {} to {} of {}", first, last, describe(x)),
                 .expected = "a last axis that does not come before the first",
                 .got = fmt::format("{} before {}", last, first),
                 .fix = "Exchange them."});
  }
  if (x.rank() == 0) return atleast_1d(x);
  Shape shape = x.shape();
  for (int i = last; i > first; --i) {
    shape[first] *= shape[i];
    shape.erase(i);
  }
  return reshape(x, shape);
}

Tensor permute(const Tensor& x, const Dims& axes) {
  Dims order;
  for (const int64_t axis : axes) order.push_back(normalize_axis("permute", axis, x.rank()));
  const bool is_complete =
      axes.size() == x.rank() && normalize_axes("permute", axes, x.rank()).size() == x.rank();
  if (!is_complete) {
    throw Error(ErrorKind::shape,
                {.where = "permute",
                 .what = fmt::format("axes {} for {}", to_string(axes), describe(x)),
                 .expected = fmt::format("all {} axes, each once", x.rank()),
                 .got = fmt::format("{}", axes.size()),
                 .fix = "Name every axis; transpose exchanges two."});
  }
  return apply(views["permute"], {&x}, {order});
}

Tensor transpose(const Tensor& x, Integer a, Integer b) {
  const int first = normalize_axis("transpose", a, x.rank());
  const int second = normalize_axis("transpose", b, x.rank());
  Dims order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  std::swap(order[first], order[second]);
  return apply(views["permute"], {&x}, {order});
}

Tensor expand(const Tensor& x, const Shape& shape) {
  Shape sizes = shape;
  const int shift = shape.size() - x.rank();
  for (int i = std::max(shift, 0); i < sizes.size(); ++i) {
    if (sizes[i] == -1) sizes[i] = x.shape()[i - shift];
  }
  return apply(views["expand"], {&x}, {sizes});
}

Tensor squeeze(const Tensor& x, const Axes& axes) {
  const bool is_all = axes.dims().empty();
  const Dims wanted = normalize_axes("squeeze", axes.dims(), x.rank());
  Shape shape;
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_wanted = std::ranges::find(wanted, i) != wanted.end();
    const int64_t size = x.shape()[i];
    if (!is_wanted || (is_all && size != 1)) {
      shape.push_back(size);
    } else if (size != 1) {
      throw Error(ErrorKind::shape, {.where = "squeeze",
                                     .what = fmt::format("axis {} of {}", i, describe(x)),
                                     .expected = "an axis of size 1",
                                     .got = fmt::format("{}", size),
                                     .fix = "Only axes of size 1 can be dropped."});
    }
  }
  return apply(views["reshape"], {&x}, {shape});
}

Tensor unsqueeze(const Tensor& x, Integer axis) {
  const int64_t rank = x.rank();
  if (axis < -rank - 1 || axis > rank) {
    throw Error(ErrorKind::shape,
                {.where = "unsqueeze",
                 .what = fmt::format("a new axis {} of {}", int64_t{axis}, describe(x)),
                 .expected = fmt::format("{} <= axis <= {}", -rank - 1, rank),
                 .got = fmt::format("{}", int64_t{axis}),
                 .fix = "Axes count from 0, or from -1 at the end."});
  }
  Shape shape = x.shape();
  shape.insert(static_cast<int>(axis < 0 ? axis + rank + 1 : int64_t{axis}), 1);
  return apply(views["reshape"], {&x}, {shape});
}

Tensor atleast_1d(const Tensor& x) {
  return x.rank() == 0 ? unsqueeze(x, 0) : x;
}

Tensor atleast_2d(const Tensor& x) {
  return x.rank() < 2 ? unsqueeze(atleast_1d(x), 0) : x;
}

Tensor atleast_3d(const Tensor& x) {
  return x.rank() < 3 ? unsqueeze(atleast_2d(x), 2) : x;
}

Tensor flip(const Tensor& x, const Axes& axes) {
  Dims starts = Dims::filled(x.rank(), 0);
  Dims steps = Dims::filled(x.rank(), 1);
  for (const int64_t axis : normalize_axes("flip", axes.dims(), x.rank())) {
    const int i = static_cast<int>(axis);
    starts[i] = std::max<int64_t>(x.shape()[i] - 1, 0);
    steps[i] = -1;
  }
  return window(x, starts, x.shape(), steps);
}

Tensor slice(const Tensor& x, Integer axis, const Range& range) {
  const int i = normalize_axis("slice", axis, x.rank());
  Dims starts = Dims::filled(x.rank(), 0);
  Dims steps = Dims::filled(x.rank(), 1);
  Shape sizes = x.shape();
  const IndexRun run = resolve(range, x.shape()[i]);
  starts[i] = run.start;
  sizes[i] = run.count;
  steps[i] = run.step;
  return window(x, starts, sizes, steps);
}

std::vector<Tensor> split(const Tensor& x, Integer length, Integer axis) {
  const int i = normalize_axis("split", axis, x.rank());
  if (length < 1) {
    throw Error(ErrorKind::value, {.where = "split",
                                   .what = "the length of the parts",
                                   .expected = "at least 1",
                                   .got = fmt::format("{}", length),
                                   .fix = "Give the size of each part, not their number."});
  }
  std::vector<Tensor> parts;
  for (int64_t start = 0; start < x.shape()[i]; start += length) {
    parts.push_back(slice(x, i, {start, std::min(start + length, x.shape()[i])}));
  }
  return parts;
}

std::vector<Tensor> split(const Tensor& x, const Dims& lengths, Integer axis) {
  const int i = normalize_axis("split", axis, x.rank());
  int64_t rest = x.shape()[i];
  for (const int64_t length : lengths) {
    rest = length >= 0 && length <= rest ? rest - length : -1;
    if (rest < 0) break;
  }
  if (rest != 0) {
    throw Error(ErrorKind::value, {.where = "split",
                                   .what = fmt::format("axis {} of {}", i, describe(x)),
                                   .expected = fmt::format("lengths whose sum is {}", x.shape()[i]),
                                   .got = to_string(lengths),
                                   .fix = "One number instead is the length of all parts."});
  }
  std::vector<Tensor> parts;
  int64_t start = 0;
  for (const int64_t length : lengths) {
    parts.push_back(slice(x, i, {start, start + length}));
    start += length;
  }
  return parts;
}

Tensor window(const Tensor& x, const Dims& starts, const Shape& sizes, const Dims& steps) {
  return apply(views["slice"], {&x}, {starts, sizes, steps});
}

const Op& ops::expand() {
  return views["expand"];
}

const Op& ops::permute() {
  return views["permute"];
}

const Op& ops::reshape() {
  return views["reshape"];
}

const Op& ops::slice() {
  return views["slice"];
}

std::span<const Op> view_ops() {
  return views.ops;
}

}  // namespace nitinol
