#include "eager/ops/masks.h"

#include "eager/all_ops.h"
#include "eager/apply.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/index.h"
#include "eager/ops/join.h"
#include "eager/ops/reduce.h"
#include "eager/ops/trailing_axes.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace nitinol {
namespace {

void check_mask(std::string_view where, const Tensor& mask) {
  if (mask.dtype() == boolean) return;
  throw Error(ErrorKind::dtype, {.where = std::string(where),
                                 .what = "the mask is " + describe(mask),
                                 .expected = "bool",
                                 .got = std::string(name_of(mask.dtype())),
                                 .fix = "Compare, as x > 0; take() chooses by indices."});
}

/// Throws Error(shape) unless the mask's axes are the first of x.
void check_mask_of(std::string_view where, const Tensor& x, const Tensor& mask) {
  check_mask(where, mask);
  bool is_prefix = mask.rank() <= x.rank();
  for (int i = 0; is_prefix && i < mask.rank(); ++i) is_prefix = mask.shape()[i] == x.shape()[i];
  if (is_prefix) return;
  throw Error(ErrorKind::shape,
              {.where = std::string(where),
               .what = fmt::format("a mask of {} for {}", to_string(mask.shape()), describe(x)),
               .expected = "the sizes of the first axes of x",
               .got = to_string(mask.shape()),
               .fix = "expand() repeats axes of size 1."});
}

void check_size(std::string_view where, int64_t size) {
  if (size < 0) throw_value(where, "size", "at least 0", fmt::format("{}", size));
}

// ---- compress

constexpr std::array<std::string_view, 1> compress_attrs = {"rows"};

void check_line(const Op& op, const Tensor& mask, int64_t rows) {
  if (mask.rank() != 1 || mask.dtype() != boolean) {
    throw Error(ErrorKind::shape, {.where = std::string(op.name),
                                   .what = "the mask is " + describe(mask),
                                   .expected = "bool of one axis",
                                   .got = to_string(mask.shape()),
                                   .fix = {}});
  }
  check_size(op.name, rows);
}

Spec infer_compress(const Op& op, Inputs inputs, const Attrs& attrs) {
  const auto rows = attr<int64_t>(attrs, 0);
  check_line(op, *inputs[1], rows);
  check_axis(op, 0, inputs[0]->rank());
  check_mask_of(op.name, *inputs[0], *inputs[1]);
  Spec spec = {.dtype = inputs[0]->dtype(),
               .shape = inputs[0]->shape(),
               .is_weak = false,
               .device = common_device(op, inputs)};
  spec.shape[0] = rows;
  check_sizes(op, spec.shape);
  return spec;
}

LibraryCall call_compress(Inputs inputs, const Attrs&, const Spec& spec) {
  return library_call(LibraryCall::Kind::compress, inputs, spec);
}

/// How many of a line come before each.
Tensor places_of(const Tensor& mask) {
  return cumsum(mask, 0) - 1;
}

/// Each row's gradient goes where the row was.
Tensor compress_rule(const GradientCall& c, int k) {
  if (k == 1) return {};
  const Tensor& mask = c.inputs[1];
  const auto rows = attr<int64_t>(c.attrs, 0);
  if (rows == 0) return zeros(c.input_specs[0].shape, c.gradient.dtype(), c.gradient.device());
  const Tensor places = places_of(mask);
  const Tensor is_there = mask & (places < rows);
  const Tensor spread = take(c.gradient, clamp(places, 0, rows - 1));
  return where(with_trailing_axes(is_there, spread.rank()), spread, 0);
}

// ---- positions

Spec infer_positions(const Op& op, Inputs inputs, const Attrs& attrs) {
  const auto rows = attr<int64_t>(attrs, 0);
  check_line(op, *inputs[0], rows);
  Spec spec = {.dtype = i64, .shape = {rows}, .is_weak = false, .device = inputs[0]->spec().device};
  check_sizes(op, spec.shape);
  return spec;
}

LibraryCall call_positions(Inputs inputs, const Attrs&, const Spec& spec) {
  return library_call(LibraryCall::Kind::positions, inputs, spec);
}

constexpr auto masks = family({
    {.name = "masked_select",
     .kind = OpKind::index,
     .arity = 2,
     .attr_names = compress_attrs,
     .infer = infer_compress,
     .call = call_compress,
     .gradient = {.rule = compress_rule, .looks_at_inputs = 0b10},
     .summary = "The first rows that a mask chooses."},
    {.name = "nonzero",
     .kind = OpKind::index,
     .accepts = DTypes{boolean},
     .attr_names = compress_attrs,
     .infer = infer_positions,
     .call = call_positions,
     .of_nothing = -1,
     .gradient = {.is_zero = true},
     .summary = "The first places where a mask is true."},
});

/// x with the axes of a mask made one.
Tensor as_rows(const Tensor& x, int mask_rank) {
  Shape shape = {1};
  for (int i = 0; i < x.rank(); ++i) {
    if (i < mask_rank)
      shape[0] *= x.shape()[i];
    else
      shape.push_back(x.shape()[i]);
  }
  return reshape(x, shape);
}

/// The mask, a line; fails if it does not choose so many.
Tensor check_fits_mask(const Tensor& mask, int64_t count) {
  const Tensor fits = sum(mask) == count;
  const Tensor checked =
      apply(ops::check_nonzero(), {&fits}, {static_cast<int64_t>(ops::Checker::mask)});
  return mask & checked;
}

int64_t chosen_by(const Tensor& mask, std::optional<Integer> size, std::source_location place) {
  return size ? int64_t{*size} : sum(mask).item<int64_t>(place);
}

Tensor expand_count(Inputs inputs, const Attrs& attrs) {
  const KeepDims keep = attr<bool>(attrs, 1) ? KeepDims::yes : KeepDims::no;
  return sum(cast(*inputs[0], boolean), attr<Dims>(attrs, 0), keep);
}

}  // namespace

Tensor masked_select(const Tensor& x, const Tensor& mask, std::optional<Integer> size,
                     std::source_location place) {
  check_mask_of("masked_select", x, mask);
  if (size) check_size("masked_select", *size);
  const Tensor line = flatten(mask);
  const Tensor rows = as_rows(x, mask.rank());
  return apply(masks["masked_select"], {&rows, &line}, {chosen_by(line, size, place)});
}

Tensor masked_fill(const Tensor& x, const Tensor& mask, const Argument& value) {
  check_mask("masked_fill", mask);
  const Promoted filled("masked_fill", value, x.dtype(), x.device());
  return where(mask, *filled.get(), x);
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Argument& values) {
  check_mask_of("masked_scatter", x, mask);
  const Promoted given("masked_scatter", values, x.dtype(), x.device());
  const Tensor& all = *given.get();
  const int row_rank = x.rank() - mask.rank();
  const Tensor chosen = with_trailing_axes(mask, x.rank());
  if (all.rank() <= row_rank || all.shape()[all.rank() - row_rank - 1] == 1) {  // the same for all
    const Tensor row = all.rank() <= row_rank ? all : squeeze(all, all.rank() - row_rank - 1);
    return where(chosen, expand(row, x.shape()), x);
  }
  Shape shape = {all.shape()[0]};
  for (int i = mask.rank(); i < x.rank(); ++i) shape.push_back(x.shape()[i]);
  const Tensor rows = expand(all, shape), line = flatten(mask);
  if (shape[0] == 0) {  // for a mask that chooses nothing
    check_fits_mask(line, 0);
    return x;
  }
  const Tensor places = where(check_fits_mask(line, shape[0]), places_of(line), 0);
  return where(chosen, reshape(take(rows, places), x.shape()), x);
}

std::vector<Tensor> nonzero(const Tensor& x, std::optional<Integer> size,
                            std::source_location place) {
  if (x.rank() == 0) {
    throw Error(ErrorKind::shape, {.where = "nonzero",
                                   .what = "a 0-d tensor has no axes to index",
                                   .expected = "at least one axis",
                                   .got = describe(x),
                                   .fix = "reshape(x, {1}) has one."});
  }
  if (size) check_size("nonzero", *size);
  const Tensor line = flatten(cast(x, boolean));
  const Tensor flat = apply(masks["nonzero"], {&line}, {chosen_by(line, size, place)});
  std::vector<Tensor> indices(static_cast<std::size_t>(x.rank()));
  int64_t step = 1;
  for (int axis = x.rank() - 1; axis >= 0; --axis) {
    const int64_t rows = std::max<int64_t>(x.shape()[axis], 1);
    Tensor along = step == 1 ? flat : floor_divide(flat, step);
    if (axis > 0) along = remainder(along, rows);
    indices[static_cast<std::size_t>(axis)] =
        size && x.rank() > 1 ? where(flat < 0, -1, along) : along;
    step *= rows;
  }
  return indices;
}

Tensor argwhere(const Tensor& x, std::optional<Integer> size, std::source_location place) {
  if (x.rank() > 0) return stack(nonzero(x, size, place), 1);
  const Tensor found = nonzero(reshape(x, {1}), size, place)[0];
  return zeros({found.size(), 0}, i64, x.device());
}

Tensor count_nonzero(const Tensor& x, const Axes& axes, KeepDims keep) {
  const Dims all = normalize_axes("count_nonzero", axes.dims(), x.rank());
  return apply_at_once(expand_count, std::array{&x}, {all, keep == KeepDims::yes});
}

std::span<const Op> masks_ops() {
  return masks.ops;
}

}  // namespace nitinol
