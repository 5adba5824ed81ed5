#include "eager/ops/index.h"

#include "eager/apply.h"
#include "eager/index_checks.h"
#include "eager/infer.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/view.h"

#include <fmt/format.h>

#include <array>
#include <vector>

namespace nitinol {
namespace {

void check_rows(const Op& op, int64_t rows) {
  if (rows >= 0) return;
  throw Error(ErrorKind::value, {.where = std::string(op.name),
                                 .what = "the number of rows",
                                 .expected = "at least 0",
                                 .got = fmt::format("{}", rows),
                                 .fix = {}});
}

// ---- take

Spec infer_take(const Op& op, Inputs inputs, const Attrs&) {
  const Spec& table = inputs[0]->spec();
  const Spec& indices = inputs[1]->spec();
  check_axis(op, 0, table.shape.size());
  check_i64(op, indices);
  Spec spec = {.dtype = table.dtype,
               .shape = indices.shape,
               .is_weak = false,
               .device = common_device(op, inputs)};
  for (int i = 1; i < table.shape.size(); ++i) spec.shape.push_back(table.shape[i]);
  if (table.shape[0] == 0 && element_count(indices.shape) > 0) throw_index(op, 0, 0);
  return spec;
}

Lookup lookup_take(const Shape& shape, const Strides& strides, const Shape& result, const Attrs&) {
  Lookup lookup = {.rows = shape[0], .step = strides[0], .strides = Dims::filled(result.size(), 0)};
  const int shift = result.size() - shape.size();
  for (int i = 1; i < shape.size(); ++i) lookup.strides[i + shift] = strides[i];
  return lookup;
}

void fail_take(const Op& op, Inputs inputs, const Attrs&) {
  fail_index(op, *inputs[1], inputs[0]->shape()[0]);
}

Tensor take_rule(const GradientCall& c, int k) {
  if (k == 1) return {};
  return scatter_add(c.gradient, c.inputs[1], c.input_specs[0].shape[0]);
}

// ---- scatter_add

Spec infer_scatter_add(const Op& op, Inputs inputs, const Attrs& attrs) {
  const Spec& values = inputs[0]->spec();
  const Spec& indices = inputs[1]->spec();
  check_dtype(op, *inputs[0]);
  check_i64(op, indices);
  const int64_t rows = attr<int64_t>(attrs, 0);
  check_rows(op, rows);
  const int depth = indices.shape.size();
  bool is_prefix = values.shape.size() >= depth;
  for (int i = 0; is_prefix && i < depth; ++i) is_prefix = values.shape[i] == indices.shape[i];
  if (!is_prefix) {
    throw Error(ErrorKind::shape, {.where = std::string(op.name),
                                   .what = fmt::format("values {} at indices {}", describe(values),
                                                       describe(indices)),
                                   .expected = "values whose first axes are those of the indices",
                                   .got = to_string(values.shape),
                                   .fix = "One value, or row of values, goes to each index."});
  }
  if (rows == 0 && element_count(indices.shape) > 0) throw_index(op, 0, 0);
  Spec spec = {.dtype = values.dtype,
               .shape = {rows},
               .is_weak = false,
               .device = common_device(op, inputs)};
  for (int i = depth; i < values.shape.size(); ++i) spec.shape.push_back(values.shape[i]);
  check_sizes(op, spec.shape);
  return spec;
}

constexpr std::array<std::string_view, 1> scatter_add_attrs = {"rows"};

LibraryCall call_scatter_add(Inputs inputs, const Attrs&, const Spec& spec) {
  return library_call(LibraryCall::Kind::scatter_add, inputs, spec);
}

void fail_scatter_add(const Op& op, Inputs inputs, const Attrs& attrs) {
  fail_index(op, *inputs[1], attr<int64_t>(attrs, 0));
}

Tensor scatter_add_rule(const GradientCall& c, int k) {
  return k == 1 ? Tensor() : take(c.gradient, c.inputs[1]);
}

// ---- gather

/// Throws Error(shape) unless the sizes are equal but along axis `along` (none if -1).
void check_sizes_match(const Op& op, const Tensor& x, const Tensor& indices, int along) {
  if (x.rank() != indices.rank()) {
    throw Error(
        ErrorKind::shape,
        {.where = std::string(op.name),
         .what = fmt::format("{} at indices {}", describe(x), describe(indices)),
         .expected = fmt::format("indices of {} axes, one for each of the tensor's", x.rank()),
         .got = fmt::format("{}", indices.rank()),
         .fix = "Insert axes of size 1 with unsqueeze; take chooses whole rows with indices "
                "of any shape."});
  }
  bool matches = true;
  for (int i = 0; matches && i < x.rank(); ++i)
    matches = i == along || x.shape()[i] == indices.shape()[i];
  if (matches) return;
  throw Error(
      ErrorKind::shape,
      {.where = std::string(op.name),
       .what = fmt::format("{} at indices {}", describe(x), describe(indices)),
       .expected = along < 0 ? "equal sizes, or 1"
                             : fmt::format("equal sizes, or 1, but along axis {}", along),
       .got = fmt::format("{} and {}", to_string(x.shape()), to_string(indices.shape())),
       .fix = "There is an index for each element of the result; take chooses whole rows."});
}

Spec infer_gather(const Op& op, Inputs inputs, const Attrs& attrs) {
  const auto axis = static_cast<int>(attr<int64_t>(attrs, 0));
  check_axis(op, attr<int64_t>(attrs, 0), inputs[0]->rank());
  check_i64(op, inputs[1]->spec());
  check_sizes_match(op, *inputs[0], *inputs[1], axis);
  if (inputs[0]->shape()[axis] == 0 && inputs[1]->size() > 0) throw_index(op, 0, 0);
  return {.dtype = inputs[0]->dtype(),
          .shape = inputs[1]->shape(),
          .is_weak = false,
          .device = common_device(op, inputs)};
}

constexpr std::array<std::string_view, 1> gather_attrs = {"axis"};

Lookup lookup_gather(const Shape& shape, const Strides& strides, const Shape&, const Attrs& attrs) {
  const auto axis = static_cast<int>(attr<int64_t>(attrs, 0));
  Lookup lookup = {.rows = shape[axis], .step = strides[axis], .strides = strides};
  lookup.strides[axis] = 0;
  return lookup;
}

void fail_gather(const Op& op, Inputs inputs, const Attrs& attrs) {
  const auto axis = static_cast<int>(attr<int64_t>(attrs, 0));
  fail_index(op, *inputs[1], inputs[0]->shape()[axis]);
}

Tensor gather_rule(const GradientCall& c, int k) {
  if (k == 1) return {};
  const auto axis = attr<int64_t>(c.attrs, 0);
  return scatter_add_along(c.gradient, axis, c.inputs[1],
                           c.input_specs[0].shape[static_cast<int>(axis)]);
}

// ---- scatter_add_along

Spec infer_scatter_add_along(const Op& op, Inputs inputs, const Attrs& attrs) {
  const Tensor& values = *inputs[0];
  const auto axis = static_cast<int>(attr<int64_t>(attrs, 0));
  const auto rows = attr<int64_t>(attrs, 1);
  check_dtype(op, values);
  check_axis(op, attr<int64_t>(attrs, 0), values.rank());
  check_i64(op, inputs[1]->spec());
  check_sizes_match(op, values, *inputs[1], -1);
  check_rows(op, rows);
  if (rows == 0 && values.size() > 0) throw_index(op, 0, 0);
  Spec spec = {.dtype = values.dtype(),
               .shape = values.shape(),
               .is_weak = false,
               .device = common_device(op, inputs)};
  spec.shape[axis] = rows;
  check_sizes(op, spec.shape);
  return spec;
}

constexpr std::array<std::string_view, 2> scatter_add_along_attrs = {"axis", "rows"};

LibraryCall call_scatter_add_along(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  return call_along(LibraryCall::Kind::scatter_add_along, inputs, attrs, spec);
}

void fail_scatter_add_along(const Op& op, Inputs inputs, const Attrs& attrs) {
  fail_index(op, *inputs[1], attr<int64_t>(attrs, 1));
}

Tensor scatter_add_along_rule(const GradientCall& c, int k) {
  if (k == 1) return {};
  return gather(c.gradient, attr<int64_t>(c.attrs, 0), c.inputs[1]);
}

/// Errors say by what name a function asked.
constexpr Op looked_up_along(std::string_view name, std::string_view summary) {
  return {.name = name,
          .kind = OpKind::index,
          .arity = 2,
          .effect = Effect::may_fail,
          .attr_names = gather_attrs,
          .infer = infer_gather,
          .lookup = lookup_gather,
          .checked_input = 1,
          .fail = fail_gather,
          .gradient = {.rule = gather_rule, .looks_at_inputs = 0b10},
          .summary = summary};
}

constexpr auto indexing = family({
    {.name = "take",
     .kind = OpKind::index,
     .arity = 2,
     .effect = Effect::may_fail,
     .infer = infer_take,
     .lookup = lookup_take,
     .checked_input = 1,
     .fail = fail_take,
     .gradient = {.rule = take_rule, .looks_at_inputs = 0b10},
     .summary = "The rows that indices name."},
    {.name = "scatter_add",
     .kind = OpKind::index,
     .arity = 2,
     .accepts = numeric,
     .effect = Effect::may_fail,
     .attr_names = scatter_add_attrs,
     .infer = infer_scatter_add,
     .call = call_scatter_add,
     .checked_input = 1,
     .fail = fail_scatter_add,
     .gradient = {.rule = scatter_add_rule, .looks_at_inputs = 0b10},
     .summary = "Rows summed where indices say."},
    looked_up_along("gather", "The elements along an axis that indices name."),
    looked_up_along("take_along", "The same, of indices that are one line."),
    {.name = "scatter_add_along",
     .kind = OpKind::index,
     .arity = 2,
     .accepts = numeric,
     .effect = Effect::may_fail,
     .attr_names = scatter_add_along_attrs,
     .infer = infer_scatter_add_along,
     .call = call_scatter_add_along,
     .checked_input = 1,
     .fail = fail_scatter_add_along,
     .gradient = {.rule = scatter_add_along_rule, .looks_at_inputs = 0b10},
     .summary = "Values summed along an axis where indices say."},
});

/// `x` with its axes of size 1, but `along`, repeated to the sizes of `other`.
Tensor repeated_to(const Tensor& x, const Tensor& other, int along) {
  if (x.rank() != other.rank()) return x;  // the op will say so
  Shape shape = x.shape();
  for (int i = 0; i < shape.size(); ++i) {
    if (i != along && shape[i] == 1) shape[i] = other.shape()[i];
  }
  return shape == x.shape() ? x : expand(x, shape);
}

}  // namespace

Tensor take(const Tensor& x, const Tensor& indices, Integer axis) {
  const int along = normalize_axis("take", axis, x.rank());
  const Tensor rows_of = as_indices("take", indices);
  if (along == 0) return apply(indexing["take"], {&x, &rows_of});
  if (rows_of.rank() == 1) {  // elements of each row, so that the result lies in rows
    Shape line = Shape::filled(x.rank(), 1);
    line[along] = rows_of.size();
    const Tensor places = repeated_to(reshape(rows_of, line), x, along);
    return apply(indexing["take_along"], {&x, &places}, {int64_t{along}});
  }
  // The axis goes to the front for the op, and the axes of the indices go to its place.
  Dims front = {along};
  for (int i = 0; i < x.rank(); ++i) {
    if (i != along) front.push_back(i);
  }
  const Tensor table = permute(x, front);
  const Tensor rows = apply(indexing["take"], {&table, &rows_of});
  Dims back;
  for (int i = 0; i < along; ++i) back.push_back(indices.rank() + i);
  for (int i = 0; i < indices.rank(); ++i) back.push_back(i);
  for (int i = along + indices.rank(); i < rows.rank(); ++i) back.push_back(i);
  return permute(rows, back);
}

Tensor scatter_add(const Tensor& values, const Tensor& indices, Integer rows) {
  const Tensor rows_of = as_indices("scatter_add", indices);
  return apply(indexing["scatter_add"], {&values, &rows_of}, {rows});
}

Tensor gather(const Tensor& x, Integer axis, const Tensor& indices) {
  const int along = normalize_axis("gather", axis, x.rank());
  const Tensor from = repeated_to(x, indices, along);
  const Tensor places = repeated_to(as_indices("gather", indices), x, along);
  return apply(indexing["gather"], {&from, &places}, {int64_t{along}});
}

Tensor scatter_add_along(const Tensor& values, Integer axis, const Tensor& indices, Integer size) {
  const int along = normalize_axis("scatter_add_along", axis, values.rank());
  const Tensor addends = repeated_to(values, indices, -1);
  const Tensor places = repeated_to(as_indices("scatter_add_along", indices), values, -1);
  return apply(indexing["scatter_add_along"], {&addends, &places}, {int64_t{along}, size});
}

Tensor one_hot(const Tensor& indices, Integer classes, DType dtype) {
  const Tensor classes_of = as_indices("one_hot", indices);
  if (classes < 0) {
    throw Error(ErrorKind::value, {.where = "one_hot",
                                   .what = "the number of classes",
                                   .expected = "at least 0",
                                   .got = fmt::format("{}", int64_t{classes}),
                                   .fix = "Pass the number of classes."});
  }
  const Tensor columns = arange(int64_t{classes}, i64, indices.device());
  return cast(unsqueeze(classes_of, -1) == columns, dtype);
}

std::span<const Op> index_ops() {
  return indexing.ops;
}

}  // namespace nitinol
