// Joining: tensors made of parts of others.
//
// Two primitives say where each input goes in the result (Op::window): `concat` puts n tensors side
// by side, each written once; `place` stores a piece in a strided window over a base. pad is a
// place over a constant, stack a concat of tensors with a new axis, x.at(...).set(v) a place over
// x.
#include "eager/ops/join.h"

#include "eager/all_ops.h"
#include "eager/apply.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/index.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

// ---- concat

constexpr std::array<std::string_view, 1> concat_attrs = {"axis"};

int axis_of(const Attrs& attrs) {
  return static_cast<int>(attr<int64_t>(attrs, 0));
}

Spec infer_concat(const Op& op, Inputs inputs, const Attrs& attrs) {
  check_axis(op, attr<int64_t>(attrs, 0), inputs[0]->rank());
  const int axis = axis_of(attrs);
  Spec spec = inputs[0]->spec();
  spec.device = common_device(op, inputs);
  spec.is_weak = false;
  for (const Tensor* input : inputs.subspan(1)) {
    Shape aligned = input->shape();
    const bool has_rank = aligned.size() == spec.shape.size();
    if (has_rank) aligned[axis] = spec.shape[axis];
    if (aligned != spec.shape || input->dtype() != spec.dtype) {
      throw Error(ErrorKind::shape,
                  {.where = std::string(op.name),
                   .what = fmt::format("{} and {} along axis {}", describe(*inputs[0]),
                                       describe(*input), axis),
                   .expected = fmt::format("equal sizes along all axes but {}", axis),
                   .got = to_string(input->shape()),
                   .fix = "Reshape, or use stack for a new axis."});
    }
    spec.shape[axis] += input->shape()[axis];
  }
  return spec;
}

std::vector<Window> concat_windows(const Spec&, const Strides& strides, Inputs inputs,
                                   const Attrs& attrs) {
  const int axis = axis_of(attrs);
  std::vector<Window> windows;
  windows.reserve(inputs.size());
  int64_t offset = 0;
  for (const Tensor* input : inputs) {
    windows.push_back({.shape = input->shape(),
                       .map = {.is_possible = true, .strides = strides, .offset = offset}});
    offset += input->shape()[axis] * strides[axis];
  }
  return windows;
}

Tensor concat_rule(const GradientCall& c, int k) {
  const int axis = axis_of(c.attrs);
  const auto size = [&](int i) { return c.input_specs[static_cast<std::size_t>(i)].shape[axis]; };
  auto& [next, start] = c.summed;
  for (; next < k; ++next) start += size(next);
  return slice(c.gradient, axis, {start, start + size(k)});
}

// ---- place

constexpr std::array<std::string_view, 3> place_attrs = {"starts", "sizes", "steps"};

Spec infer_place(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = inputs[0]->spec();
  spec.device = common_device(op, inputs);
  const Shape& sizes = attr<Dims>(attrs, 1);
  const Shape& given = inputs[1]->shape();
  const Dims& steps = attr<Dims>(attrs, 2);
  check_window(op, spec.shape, attr<Dims>(attrs, 0), sizes, steps);
  for (int i = 0; i < sizes.size(); ++i) {
    if (sizes[i] > 1) check_step(op, steps[i]);  // two values cannot be stored in one place
  }
  if (inputs[1]->dtype() != spec.dtype) {
    throw Error(ErrorKind::dtype,
                {.where = std::string(op.name),
                 .what = fmt::format("{} into {}", describe(*inputs[1]), describe(spec)),
                 .expected = "one dtype",
                 .got = "two",
                 .fix = "Cast the value."});
  }
  bool fits = given.size() <= sizes.size();
  for (int i = 1; fits && i <= given.size(); ++i) {
    fits = given[given.size() - i] == 1 || given[given.size() - i] == sizes[sizes.size() - i];
  }
  if (!fits) {
    throw Error(ErrorKind::shape,
                {.where = std::string(op.name),
                 .what = fmt::format("{} does not broadcast to a part of {}", describe(*inputs[1]),
                                     describe(spec)),
                 .expected = fmt::format("a shape that broadcasts to {}", to_string(sizes)),
                 .got = to_string(given),
                 .fix = "Reshape the value, or check the indices."});
  }
  return spec;
}

std::vector<Window> place_windows(const Spec& spec, const Strides& strides, Inputs,
                                  const Attrs& attrs) {
  const Window base = {.shape = spec.shape,
                       .map = {.is_possible = true, .strides = strides, .offset = 0}};
  Window window = base;
  const Dims& starts = attr<Dims>(attrs, 0);
  const Dims& steps = attr<Dims>(attrs, 2);
  window.shape = attr<Dims>(attrs, 1);
  if (element_count(window.shape) == 0) return {base, window};
  for (int i = 0; i < strides.size(); ++i) {
    window.map.strides[i] = strides[i] * steps[i];
    window.map.offset += strides[i] * starts[i];
  }
  return {base, window};
}

Tensor place_rule(const GradientCall& c, int k) {
  const Dims& starts = attr<Dims>(c.attrs, 0);
  const Dims& sizes = attr<Dims>(c.attrs, 1);
  const Dims& steps = attr<Dims>(c.attrs, 2);
  if (k == 1) return window(c.gradient, starts, sizes, steps);
  return place(c.gradient, zeros({}, c.result_spec.dtype, c.result_spec.device), starts, sizes,
               steps);
}

constexpr auto joins = family({
    {.name = "concat",
     .kind = OpKind::index,
     .arity = -1,
     .attr_names = concat_attrs,
     .infer = infer_concat,
     .windows = concat_windows,
     .gradient = {.rule = concat_rule},
     .summary = "Tensors one after another along an axis."},
    {.name = "place",
     .kind = OpKind::index,
     .arity = 2,
     .attr_names = place_attrs,
     .infer = infer_place,
     .windows = place_windows,
     .gradient = {.rule = place_rule},
     .summary = "A piece stored in a strided window over a base."},
});

[[noreturn]] void throw_no_tensors(std::string_view where) {
  throw Error(ErrorKind::value, {.where = std::string(where),
                                 .what = "no tensors",
                                 .expected = "at least one",
                                 .got = "none",
                                 .fix = "Check for an empty list first."});
}

/// Throws Error(shape), Error(value) for paddings that are none of x.
void check_paddings(const Tensor& x, std::span<const Padding> paddings) {
  if (std::cmp_not_equal(paddings.size(), x.rank())) {
    throw Error(ErrorKind::shape, {.where = "pad",
                                   .what = describe(x),
                                   .expected = fmt::format("{} paddings, one per axis", x.rank()),
                                   .got = fmt::format("{}", paddings.size()),
                                   .fix = "Give {0, 0} for axes that stay."});
  }
  for (std::size_t i = 0; i < paddings.size(); ++i) {
    const auto [before, after] = paddings[i];
    if (before >= 0 && after >= 0) continue;
    throw Error(ErrorKind::value, {.where = "pad",
                                   .what = fmt::format("axis {}", i),
                                   .expected = "paddings of at least 0",
                                   .got = fmt::format("{{{}, {}}}", before, after),
                                   .fix = "Cut with slice or at."});
  }
}

/// Which of `size` elements stands at each of the places, which count from the first element.
Tensor source_of(const Tensor& places, int64_t size, PadMode mode) {
  if (mode == PadMode::circular) return remainder(places, size);
  if (mode == PadMode::replicate) return clamp(places, 0, size - 1);
  const int64_t period = std::max<int64_t>(2 * (size - 1), 1);  // there and back
  const Tensor place = remainder(places, period);
  return minimum(place, period - place);
}

/// How many elements border() can give.
int64_t widest_border(int64_t size, PadMode mode) {
  if (mode == PadMode::replicate) return std::numeric_limits<int64_t>::max();
  return mode == PadMode::circular ? size : size - 1;
}

/// What stands before x, or after it, as a view.
Tensor border(const Tensor& x, int axis, int64_t count, PadMode mode, bool is_before) {
  const int64_t size = x.shape()[axis];
  if (mode == PadMode::circular)
    return is_before ? slice(x, axis, {size - count, size}) : slice(x, axis, {0, count});
  if (mode == PadMode::reflect) {
    const int64_t first = is_before ? 1 : size - 1 - count;
    return flip(slice(x, axis, {first, first + count}), {axis});
  }
  Shape shape = x.shape();
  shape[axis] = count;
  const int64_t edge = is_before ? 0 : size - 1;
  return expand(slice(x, axis, {edge, edge + 1}), shape);
}

Tensor padded(const Tensor& x, int axis, Padding padding, PadMode mode) {
  const auto [before, after] = padding;
  const int64_t size = x.shape()[axis];
  if (before == 0 && after == 0) return x;
  if (size == 0) {
    throw Error(ErrorKind::shape, {.where = "pad",
                                   .what = fmt::format("axis {} of {}", axis, describe(x)),
                                   .expected = "elements to repeat",
                                   .got = "none",
                                   .fix = "Pad with a number."});
  }
  if (std::max(before, after) <= widest_border(size, mode)) {
    std::vector<Tensor> parts = {x};
    if (before > 0) parts.insert(parts.begin(), border(x, axis, before, mode, true));
    if (after > 0) parts.push_back(border(x, axis, after, mode, false));
    return concat(parts, axis);
  }
  const Tensor places = arange(-before, size + after, 1, {}, x.device());
  return take(x, source_of(places, size, mode), axis);
}

DType common_dtype_of(std::string_view where, std::span<const Tensor> tensors) {
  DType dtype = tensors[0].dtype();
  for (const Tensor& tensor : tensors) dtype = promote(where, dtype, tensor.dtype());
  return dtype;
}

}  // namespace

Tensor concat(std::span<const Tensor> tensors, Integer axis) {
  if (tensors.empty()) throw_no_tensors("concat");
  const DType dtype = common_dtype_of("concat", tensors);
  std::vector<Tensor> parts;
  parts.reserve(tensors.size());
  for (const Tensor& tensor : tensors) parts.push_back(cast(tensor, dtype));
  std::vector<const Tensor*> inputs;
  inputs.reserve(parts.size());
  for (const Tensor& part : parts) inputs.push_back(&part);
  const int64_t along = normalize_axis("concat", axis, tensors[0].rank());
  return apply(joins["concat"], inputs, {along});
}

Tensor concat(std::initializer_list<Tensor> tensors, Integer axis) {
  return concat(std::span(tensors.begin(), tensors.size()), axis);
}

Tensor stack(std::span<const Tensor> tensors, Integer axis) {
  if (tensors.empty()) throw_no_tensors("stack");
  std::vector<Tensor> parts;
  for (const Tensor& tensor : tensors) {
    if (tensor.shape() != tensors[0].shape()) {
      throw Error(ErrorKind::shape,
                  {.where = "stack",
                   .what = fmt::format("{} and {}", describe(tensors[0]), describe(tensor)),
                   .expected = "tensors of one shape",
                   .got = to_string(tensor.shape()),
                   .fix = "Use concat for different sizes along an axis."});
    }
    parts.push_back(unsqueeze(tensor, axis));
  }
  static_cast<void>(common_dtype_of("stack", tensors));  // or an Error that says so
  return concat(parts, axis < 0 ? axis + parts[0].rank() : int64_t{axis});
}

Tensor stack(std::initializer_list<Tensor> tensors, Integer axis) {
  return stack(std::span(tensors.begin(), tensors.size()), axis);
}

Tensor pad(const Tensor& x, std::span<const Padding> paddings, const Argument& value) {
  check_paddings(x, paddings);
  Shape shape = x.shape();
  Dims starts;
  for (int i = 0; i < x.rank(); ++i) {
    const auto [before, after] = paddings[static_cast<std::size_t>(i)];
    starts.push_back(before);
    shape[i] += before + after;
  }
  const Promoted around("pad", value, x.dtype(), x.device());
  const Tensor base = expand(cast(*around.get(), x.dtype()), shape);
  return place(base, x, starts, x.shape(), Dims::filled(x.rank(), 1));
}

Tensor pad(const Tensor& x, std::initializer_list<Padding> paddings, const Argument& value) {
  return pad(x, std::span(paddings.begin(), paddings.size()), value);
}

Tensor pad(const Tensor& x, std::span<const Padding> paddings, PadMode mode) {
  check_paddings(x, paddings);
  Tensor result = x;
  for (int i = 0; i < x.rank(); ++i)
    result = padded(result, i, paddings[static_cast<std::size_t>(i)], mode);
  return result;
}

Tensor pad(const Tensor& x, std::initializer_list<Padding> paddings, PadMode mode) {
  return pad(x, std::span(paddings.begin(), paddings.size()), mode);
}

Tensor place(const Tensor& base, const Tensor& piece, const Dims& starts, const Shape& sizes,
             const Dims& steps) {
  const Tensor value = cast(piece, base.dtype());
  return apply(joins["place"], {&base, &value}, {starts, sizes, steps});
}

const Op& ops::concat() {
  return joins["concat"];
}

std::span<const Op> join_ops() {
  return joins.ops;
}

}  // namespace nitinol
