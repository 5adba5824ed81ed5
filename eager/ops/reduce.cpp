#include "eager/ops/reduce.h"

#include "eager/apply.h"
#include "eager/infer.h"
#include "eager/ops/family.h"
#include "eager/ops/ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

namespace nitinol {
namespace {

constexpr std::array<std::string_view, 2> reduce_attrs = {"axes", "keepdims"};

/// Sums, products and conditions of nothing have a value; the others need an element.
bool has_neutral(Combine combine) {
  return combine == Combine::add || combine == Combine::multiply ||
         combine == Combine::logical_or || combine == Combine::logical_and;
}

Spec infer_reduce(const Op& op, Inputs inputs, const Attrs& attrs) {
  const Tensor& x = *inputs[0];
  check_dtype(op, x);
  const Dims axes = normalize_axes(op.name, attr<Dims>(attrs, 0), x.rank());
  const bool keeps = attr<bool>(attrs, 1);
  Spec spec = x.spec();
  spec.shape = {};
  if (is_arg(op.combine)) spec.dtype = i64;
  for (int i = 0; i < x.rank(); ++i) {
    const bool is_reduced = std::ranges::find(axes, i) != axes.end();
    if (!is_reduced)
      spec.shape.push_back(x.shape()[i]);
    else if (keeps)
      spec.shape.push_back(1);
  }
  if (x.size() == 0 && element_count(spec.shape) > 0 && !has_neutral(op.combine)) {
    throw Error(ErrorKind::shape, {.where = std::string(op.name),
                                   .what = fmt::format("{} of no elements: {} over axes {}",
                                                       op.name, describe(x), to_string(axes)),
                                   .expected = "at least one element along the reduced axes",
                                   .got = "none",
                                   .fix = "Check for an empty tensor first."});
  }
  return spec;
}

/// A reduced tensor with its reduced axes back, as sizes 1.
Tensor unreduced(const Tensor& x, const GradientCall& c) {
  const Shape& full = c.input_specs[0].shape;
  Shape shape = full;
  for (const int64_t axis : normalize_axes("sum", attr<Dims>(c.attrs, 0), full.size()))
    shape[static_cast<int>(axis)] = 1;
  return reshape(x, shape);
}

Tensor sum_rule(const GradientCall& c, int) {
  return expand(unreduced(c.gradient, c), c.input_specs[0].shape);
}

/// All elements that are the extreme share its gradient equally.
Tensor extreme_rule(const GradientCall& c, int) {
  const Tensor& x = c.inputs[0];
  const Tensor is_extreme = cast(x == unreduced(c.result, c), x.dtype());
  const Tensor count = sum(is_extreme, attr<Dims>(c.attrs, 0), keepdims);
  return is_extreme * (unreduced(c.gradient, c) / count);
}

/// The product of the others: where there is one zero only that element has any, and where there
/// are two nothing has.
Tensor prod_rule(const GradientCall& c, int) {
  const Tensor& x = c.inputs[0];
  const Dims& axes = attr<Dims>(c.attrs, 0);
  const Tensor is_zero = x == 0;
  const Tensor zeros_in = sum(cast(is_zero, x.dtype()), axes, keepdims);
  const Tensor nonzero = where(is_zero, 1, x);
  const Tensor others = prod(nonzero, axes, keepdims);
  const Tensor partial =
      where(is_zero, where(zeros_in == 1, others, 0), where(zeros_in == 0, others / nonzero, 0));
  return unreduced(c.gradient, c) * partial;
}

constexpr Op reduce_op(std::string_view name, DTypes accepts, Combine combine,
                       std::string_view summary, Gradient gradient = {.is_zero = true}) {
  return {.name = name,
          .kind = OpKind::reduce,
          .accepts = accepts,
          .attr_names = reduce_attrs,
          .infer = infer_reduce,
          .combine = combine,
          .gradient = gradient,
          .summary = summary};
}

constexpr DTypes accumulating = floating | DTypes{i64, u64};
constexpr Gradient extreme_gradient = {
    .rule = extreme_rule, .looks_at_inputs = 1, .looks_at_result = true};

// ---- scans

constexpr std::array<std::string_view, 1> scan_attrs = {"axis"};

Spec infer_scan(const Op& op, Inputs inputs, const Attrs& attrs) {
  check_dtype(op, *inputs[0]);
  check_axis(op, attr<int64_t>(attrs, 0), inputs[0]->rank());
  return inputs[0]->spec();
}

template <Combine combine>
LibraryCall call_scan(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  LibraryCall call = call_along(LibraryCall::Kind::scan, inputs, attrs, spec);
  call.combine = combine;
  return call;
}

Tensor cumsum_rule(const GradientCall& c, int) {
  const auto axis = attr<int64_t>(c.attrs, 0);
  return flip(cumsum(flip(c.gradient, axis), axis), axis);
}

/// The sums over j >= i.
Tensor sums_from(const Tensor& x, int64_t axis) {
  return flip(cumsum(flip(x, axis), axis), axis);
}

/// Without zeros dy[j]/dx[i] = y[j] / x[i] for j >= i. The first zero of a line has the products
/// without it; what comes before sees zeros from there on, and what comes after nothing.
Tensor cumprod_rule(const GradientCall& c, int) {
  const auto axis = attr<int64_t>(c.attrs, 0);
  const Tensor& x = c.inputs[0];
  const Tensor is_zero = x == 0;
  const Tensor zeros_up_to = cumsum(is_zero, axis);
  const Tensor is_first_zero = is_zero & (zeros_up_to == 1);
  const Tensor before = sums_from(c.gradient * c.result, axis) / where(is_zero, 1, x);
  const Tensor without = cumprod(where(is_first_zero, 1, x), axis);
  // Up to the first zero `without` has products that are not over all elements.
  const Tensor at_zero = sums_from(where(zeros_up_to > 0, c.gradient * without, 0), axis);
  return where(zeros_up_to == 0, before, where(is_first_zero, at_zero, 0));
}

/// The last of equal ones has the gradient, as PyTorch's.
Tensor extreme_scan_rule(const GradientCall& c, int) {
  const auto axis = attr<int64_t>(c.attrs, 0);
  const Tensor& x = c.inputs[0];
  const Tensor is_new = (x == c.result) | ((x != x) & (c.result != c.result));
  Shape line = Shape::filled(x.rank(), 1);
  line[static_cast<int>(axis)] = -1;
  const int64_t size = x.shape()[static_cast<int>(axis)];
  const Tensor places = reshape(arange(size, {}, x.device()), line);
  return scatter_add_along(c.gradient, axis, cummax(where(is_new, places, 0), axis), size);
}

/// d y[j] / d x[i] = e^(x[i] - y[j]) for j >= i, at most 1. The sums of those over j are formed for
/// y[i] instead of x[i], each from two of half as many terms: linear in the gradient, whose own
/// derivative is asked for, also where it is 0. (PyTorch's logcumsumexp_backward scans ln of it.)
/// Where x is -infinity, so are leading y: nothing depends on them. NaN where x is infinity.
Tensor logcumsumexp_rule(const GradientCall& c, int) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const auto axis = attr<int64_t>(c.attrs, 0);
  const bool is_wide = c.inputs[0].dtype() == f64;
  const double most = is_wide ? std::numeric_limits<double>::max()
                              : static_cast<double>(std::numeric_limits<float>::max());
  const Tensor x = cast(c.inputs[0], is_wide ? f64 : f32);
  const Tensor given = x.dtype() == c.result.dtype() ? c.result : logcumsumexp(x, axis);
  const Tensor y = where(given == -infinity, -most, given);
  const Tensor level = minimum(y, most);
  Tensor sums = cast(c.gradient, x.dtype());
  const int64_t size = x.shape()[static_cast<int>(axis)];
  for (int64_t distance = 1; distance < size; distance *= 2) {
    const Range near = {.stop = -distance}, far = {.start = distance};
    const Tensor share = exp(slice(level, axis, near) - slice(level, axis, far));
    const Tensor both = slice(sums, axis, near) + share * slice(sums, axis, far);
    sums = concat({both, slice(sums, axis, {.start = size - distance})}, axis);
  }
  return exp(x - y) * sums;
}

/// An op that joins the elements along an axis up to each.
template <Combine combine>
consteval Op scan_op(std::string_view name, DTypes accepts, std::string_view summary,
                     Gradient gradient) {
  return {.name = name,
          .kind = OpKind::index,
          .accepts = accepts,
          .attr_names = scan_attrs,
          .infer = infer_scan,
          .call = call_scan<combine>,
          .gradient = gradient,
          .summary = summary};
}

constexpr auto summed_in_full =
    std::to_array<std::string_view>({"sum", "prod", "cumsum", "cumprod", "logcumsumexp"});
constexpr auto reductions = family<summed_in_full>({
    reduce_op("sum", accumulating, Combine::add, "Sum.", {.rule = sum_rule}),
    reduce_op("prod", accumulating, Combine::multiply, "Product.",
              {.rule = prod_rule, .looks_at_inputs = 1}),
    reduce_op("max", numeric, Combine::maximum, "Largest element.", extreme_gradient),
    reduce_op("min", numeric, Combine::minimum, "Smallest element.", extreme_gradient),
    reduce_op("any", {boolean}, Combine::logical_or, "Whether any element is true."),
    reduce_op("all", {boolean}, Combine::logical_and, "Whether all elements are true."),
    reduce_op("argmax", numeric, Combine::arg_maximum, "Position of the first largest element."),
    reduce_op("argmin", numeric, Combine::arg_minimum, "Position of the first smallest element."),
    scan_op<Combine::add>("cumsum", accumulating, "Running sums along an axis.",
                          {.rule = cumsum_rule}),
    scan_op<Combine::multiply>(
        "cumprod", accumulating, "Running products along an axis.",
        {.rule = cumprod_rule, .looks_at_inputs = 1, .looks_at_result = true}),
    scan_op<Combine::maximum>(
        "cummax", numeric, "Largest elements so far along an axis.",
        {.rule = extreme_scan_rule, .looks_at_inputs = 1, .looks_at_result = true}),
    scan_op<Combine::minimum>(
        "cummin", numeric, "Smallest elements so far along an axis.",
        {.rule = extreme_scan_rule, .looks_at_inputs = 1, .looks_at_result = true}),
    scan_op<Combine::log_add_exp>(
        "logcumsumexp", floating, "ln of the running sums of e^x along an axis.",
        {.rule = logcumsumexp_rule, .looks_at_inputs = 1, .looks_at_result = true}),
});

Tensor reduce(const Op& op, const Tensor& x, const Axes& axes, KeepDims keep) {
  return apply(op, {&x}, {axes.dims(), keep == KeepDims::yes});
}

/// `x` in the dtype that sums of it have.
Tensor accumulated(const Tensor& x) {
  if (is_floating(x.dtype())) return x;
  return cast(x, is_unsigned(x.dtype()) ? u64 : i64);
}

/// x with the axes, sorted, as one: its last.
Tensor joined_last(const Tensor& x, const Dims& axes) {
  Dims order;
  for (int i = 0; i < x.rank(); ++i)
    if (std::ranges::find(axes, i) == axes.end()) order.push_back(i);
  const int kept = order.size();
  for (const int64_t axis : axes) order.push_back(axis);
  return flatten(permute(x, order), kept);
}

/// The op's positions are along one axis, or in row-major order of all.
Tensor arg_reduce(const Op& op, const Tensor& given, const Axes& over, KeepDims keep) {
  const Tensor x = given.dtype() == boolean ? cast(given, u8) : given;
  const Dims axes = normalize_axes(op.name, over.dims(), x.rank());
  if (axes.size() <= 1 || axes.size() == x.rank()) return reduce(op, x, over, keep);
  const Tensor places = reduce(op, joined_last(x, axes), -1, KeepDims::no);
  if (keep == KeepDims::no) return places;
  Shape shape = x.shape();
  for (const int64_t axis : axes) shape[static_cast<int>(axis)] = 1;
  return reshape(places, shape);
}

}  // namespace

Tensor sum(const Tensor& x, const Axes& axes, KeepDims keep) {
  return reduce(reductions["sum"], accumulated(x), axes, keep);
}

Tensor prod(const Tensor& x, const Axes& axes, KeepDims keep) {
  return reduce(reductions["prod"], accumulated(x), axes, keep);
}

Tensor max(const Tensor& x, const Axes& axes, KeepDims keep) {
  return x.dtype() == boolean ? any(x, axes, keep) : reduce(reductions["max"], x, axes, keep);
}

Tensor min(const Tensor& x, const Axes& axes, KeepDims keep) {
  return x.dtype() == boolean ? all(x, axes, keep) : reduce(reductions["min"], x, axes, keep);
}

Tensor any(const Tensor& x, const Axes& axes, KeepDims keep) {
  return reduce(reductions["any"], cast(x, boolean), axes, keep);
}

Tensor all(const Tensor& x, const Axes& axes, KeepDims keep) {
  return reduce(reductions["all"], cast(x, boolean), axes, keep);
}

Tensor argmax(const Tensor& x, const Axes& axes, KeepDims keep) {
  return arg_reduce(reductions["argmax"], x, axes, keep);
}

Tensor argmin(const Tensor& x, const Axes& axes, KeepDims keep) {
  return arg_reduce(reductions["argmin"], x, axes, keep);
}

Tensor cumsum(const Tensor& x, Integer axis) {
  const int along = normalize_axis("cumsum", axis, x.rank());
  const Tensor terms = accumulated(x);
  return apply(reductions["cumsum"], {&terms}, {int64_t{along}});
}

Tensor cumprod(const Tensor& x, Integer axis) {
  const int along = normalize_axis("cumprod", axis, x.rank());
  const Tensor factors = accumulated(x);
  return apply(reductions["cumprod"], {&factors}, {int64_t{along}});
}

Tensor cummax(const Tensor& x, Integer axis) {
  const int along = normalize_axis("cummax", axis, x.rank());
  if (x.dtype() == boolean) return cast(cummax(cast(x, u8), axis), boolean);
  return apply(reductions["cummax"], {&x}, {int64_t{along}});
}

Tensor cummin(const Tensor& x, Integer axis) {
  const int along = normalize_axis("cummin", axis, x.rank());
  if (x.dtype() == boolean) return cast(cummin(cast(x, u8), axis), boolean);
  return apply(reductions["cummin"], {&x}, {int64_t{along}});
}

Tensor logcumsumexp(const Tensor& x, Integer axis) {
  const int along = normalize_axis("logcumsumexp", axis, x.rank());
  const Tensor terms = is_floating(x.dtype()) ? x : cast(x, f32);
  return apply(reductions["logcumsumexp"], {&terms}, {int64_t{along}});
}

std::span<const Op> reduce_ops() {
  return reductions.ops;
}

}  // namespace nitinol
