#include "eager/ops/scatter.h"

#include "eager/apply.h"
#include "eager/index_checks.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/index.h"
#include "eager/ops/trailing_axes.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <array>

namespace nitinol {
namespace {

constexpr std::array<std::string_view, 1> scatter_attrs = {"arrival"};

Arrival arrival_of(const Attrs& attrs) {
  return static_cast<Arrival>(attr<int64_t>(attrs, 0));
}

Spec infer_scatter(const Op& op, Inputs inputs, const Attrs& attrs) {
  const Spec &x = inputs[0]->spec(), &values = inputs[1]->spec(), &indices = inputs[2]->spec();
  check_axis(op, 0, x.shape.size());
  check_i64(op, indices);
  const auto arrival = attr<int64_t>(attrs, 0);
  const bool is_known = arrival >= 0 && arrival <= static_cast<int64_t>(Arrival::minimum);
  if (!is_known) throw_value(op.name, "arrival", "a known one", fmt::format("{}", arrival));
  const bool is_joined = arrival != static_cast<int64_t>(Arrival::set);
  if (values.dtype != x.dtype) {
    throw Error(ErrorKind::dtype, {.where = std::string(op.name),
                                   .what = "values " + describe(values) + " for " + describe(x),
                                   .expected = "one dtype",
                                   .got = std::string(name_of(values.dtype)),
                                   .fix = {}});
  }
  if (is_joined) check_dtype(op.name, numeric, *inputs[0]);
  Shape expected = indices.shape;
  for (int i = 1; i < x.shape.size(); ++i) expected.push_back(x.shape[i]);
  if (values.shape != expected) {
    throw Error(ErrorKind::shape, {.where = std::string(op.name),
                                   .what = "values " + describe(values) + " for " + describe(x),
                                   .expected = to_string(expected),
                                   .got = to_string(values.shape),
                                   .fix = "There is a value, or row of values, for each index."});
  }
  if (x.shape[0] == 0 && element_count(indices.shape) > 0) throw_index(op, 0, 0);
  Spec spec = x;
  spec.is_weak = false;
  spec.device = common_device(op, inputs);
  return spec;
}

LibraryCall call_scatter(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  LibraryCall call = library_call(LibraryCall::Kind::scatter, inputs, spec);
  const Arrival arrival = arrival_of(attrs);
  call.replaces = arrival == Arrival::set;
  if (arrival == Arrival::multiply) call.combine = Combine::multiply;
  if (arrival == Arrival::maximum) call.combine = Combine::maximum;
  if (arrival == Arrival::minimum) call.combine = Combine::minimum;
  return call;
}

void fail_scatter(const Op& op, Inputs inputs, const Attrs&) {
  fail_index(op, *inputs[2], inputs[0]->shape()[0]);
}

Tensor scatter_by(const Tensor& x, const Tensor& values, const Tensor& indices, Arrival arrival);

/// The last value at a place has its gradient; x where none arrived.
Tensor set_rule(const GradientCall& c, int k) {
  const Tensor& indices = c.inputs[2];
  const Spec &x = c.input_specs[0], &values = c.input_specs[1];
  if (k == 0) {
    const Tensor none = zeros(values.shape, c.gradient.dtype(), c.gradient.device());
    return scatter_by(c.gradient, none, indices, Arrival::set);
  }
  const Tensor order = reshape(arange(indices.size(), {}, indices.device()), indices.shape());
  const Tensor last = scatter_by(full({x.shape[0]}, int64_t{-1}, i64, order.device()), order,
                                 indices, Arrival::set);
  const Tensor stays = take(last, indices) == order;
  return where(with_trailing_axes(stays, values.shape.size()), take(c.gradient, indices), 0);
}

/// Equal extremes share the gradient.
Tensor arrived_extreme_rule(const GradientCall& c, int k) {
  const Tensor &x = c.inputs[0], &values = c.inputs[1], &indices = c.inputs[2];
  const DType dtype = c.gradient.dtype();
  const Tensor of_x = cast(x == c.result, dtype);
  const Tensor of_values = cast(values == take(c.result, indices), dtype);
  const Tensor count = of_x + scatter_add(of_values, indices, x.shape()[0]);
  const Tensor share = c.gradient / count;
  return k == 0 ? where(of_x > 0, share, 0) : where(of_values > 0, take(share, indices), 0);
}

/// The product of all other factors of a place, of which one may be 0.
Tensor multiply_rule(const GradientCall& c, int k) {
  const Tensor &x = c.inputs[0], &values = c.inputs[1], &indices = c.inputs[2];
  const Tensor zeros_of =
      cast(x == 0, i64) + scatter_add(cast(values == 0, i64), indices, x.shape()[0]);
  const Tensor rest =
      scatter_by(where(x == 0, 1, x), where(values == 0, 1, values), indices, Arrival::multiply);
  const auto slope = [](const Tensor& factor, const Tensor& product, const Tensor& count) {
    const Tensor others = where(factor == 0, product, product / where(factor == 0, 1, factor));
    return where(count == cast(factor == 0, i64), others, 0);
  };
  if (k == 0) return c.gradient * slope(x, rest, zeros_of);
  return take(c.gradient, indices) * slope(values, take(rest, indices), take(zeros_of, indices));
}

Tensor scatter_rule(const GradientCall& c, int k) {
  if (k == 2) return {};
  switch (arrival_of(c.attrs)) {
    case Arrival::multiply:
      return multiply_rule(c, k);
    case Arrival::maximum:
    case Arrival::minimum:
      return arrived_extreme_rule(c, k);
    case Arrival::add:
      return k == 0 ? c.gradient : take(c.gradient, c.inputs[2]);
    case Arrival::set:
      break;
  }
  return set_rule(c, k);
}

constexpr auto scatters = family({
    {.name = "scatter",
     .kind = OpKind::index,
     .arity = 3,
     .effect = Effect::may_fail,
     .attr_names = scatter_attrs,
     .infer = infer_scatter,
     .call = call_scatter,
     .of_nothing = std::nullopt,
     .checked_input = 2,
     .fail = fail_scatter,
     .gradient = {.rule = scatter_rule, .looks_at_inputs = 0b111, .looks_at_result = true},
     .summary = "Rows replaced by, or joined with, others where indices say."},
});

Tensor scatter_by(const Tensor& x, const Tensor& values, const Tensor& indices, Arrival arrival) {
  return apply(scatters["scatter"], {&x, &values, &indices}, {static_cast<int64_t>(arrival)});
}

}  // namespace

Tensor scatter(const Tensor& x, const Tensor& indices, const Argument& values, Arrival arrival) {
  const Tensor places = as_indices("scatter", indices);
  check_axis(scatters["scatter"], 0, x.rank());
  const Promoted given("scatter", values, x.dtype(), x.device());
  Shape shape = indices.shape();
  for (int i = 1; i < x.rank(); ++i) shape.push_back(x.shape()[i]);
  const Tensor rows = expand(*given.get(), shape);
  const bool is_short = x.dtype() == f16 || x.dtype() == bf16;
  if (arrival == Arrival::add && is_short)  // sums are rounded once
    return x + scatter_add(rows, places, x.shape()[0]);
  return scatter_by(x, rows, places, arrival);
}

Tensor scatter_along(const Tensor& x, Integer axis, const Tensor& indices, const Argument& values,
                     Arrival arrival) {
  const Tensor along_axis = as_indices("scatter_along", indices);
  const int along = normalize_axis("scatter_along", axis, x.rank());
  Shape shape = x.shape();
  bool fits = indices.rank() == x.rank();
  if (fits) shape[along] = indices.shape()[along];
  for (int i = 0; fits && i < x.rank(); ++i)
    fits = i == along || indices.shape()[i] == shape[i] || indices.shape()[i] == 1;
  if (!fits) {
    throw Error(ErrorKind::shape,
                {.where = "scatter_along",
                 .what = fmt::format("{} at indices {}", describe(x), describe(indices)),
                 .expected = fmt::format("equal sizes, or 1, but along axis {}", along),
                 .got = to_string(indices.shape()),
                 .fix = "There is an index for each value; scatter() is for whole rows."});
  }
  // Elements as rows: their number in x. A look-up among all numbers of the axis checks the index.
  const Tensor own = take(arange(x.shape()[along], {}, x.device()), along_axis);
  Tensor places = expand(own, shape) * strides_of(x.shape())[along];
  for (int i = 0; i < x.rank(); ++i) {
    if (i == along) continue;
    Shape line = Shape::filled(x.rank(), 1);
    line[i] = shape[i];
    places = places + reshape(arange(shape[i], {}, x.device()), line) * strides_of(x.shape())[i];
  }
  return reshape(scatter(flatten(x), places, values, arrival), x.shape());
}

std::span<const Op> scatter_ops() {
  return scatters.ops;
}

}  // namespace nitinol
