#include "eager/ops/order.h"

#include "eager/apply.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/family.h"
#include "eager/ops/index.h"
#include "eager/ops/rearrange.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>

namespace nitinol {
namespace {

// ---- sort

constexpr std::array<std::string_view, 2> sort_attrs = {"axis", "is_descending"};

Spec infer_sort(const Op& op, Inputs inputs, const Attrs& attrs) {
  check_axis(op, attr<int64_t>(attrs, 0), inputs[0]->rank());
  Spec spec = inputs[0]->spec();
  spec.is_weak = false;
  return spec;
}

LibraryCall call_sort(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  LibraryCall call = call_along(LibraryCall::Kind::sort, inputs, attrs, spec);
  call.is_descending = attr<bool>(attrs, 1);
  return call;
}

/// Each element's gradient goes where the element was.
Tensor sort_rule(const GradientCall& c, int) {
  const auto axis = attr<int64_t>(c.attrs, 0);
  const SortOrder order = attr<bool>(c.attrs, 1) ? SortOrder::descending : SortOrder::ascending;
  return scatter_add_along(c.gradient, axis, argsort(c.inputs[0], axis, order),
                           c.input_specs[0].shape[static_cast<int>(axis)]);
}

// ---- argsort

constexpr std::array<std::string_view, 3> argsort_attrs = {"axis", "is_descending", "count"};

Spec infer_argsort(const Op& op, Inputs inputs, const Attrs& attrs) {
  const auto axis = static_cast<int>(attr<int64_t>(attrs, 0));
  check_axis(op, attr<int64_t>(attrs, 0), inputs[0]->rank());
  Spec spec = inputs[0]->spec();
  const int64_t size = spec.shape[axis], count = attr<int64_t>(attrs, 2);
  if (count < 0 || count > size) {
    throw Error(ErrorKind::value, {.where = std::string(op.name),
                                   .what = fmt::format("the first {} along axis {} of {}", count,
                                                       axis, describe(*inputs[0])),
                                   .expected = fmt::format("between 0 and {}", size),
                                   .got = fmt::format("{}", count),
                                   .fix = {}});
  }
  spec.dtype = i64;
  spec.is_weak = false;
  spec.shape[axis] = count;
  return spec;
}

LibraryCall call_argsort(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  LibraryCall call = call_along(LibraryCall::Kind::argsort, inputs, attrs, spec);
  call.is_descending = attr<bool>(attrs, 1);
  return call;
}

// ---- search

constexpr std::array<std::string_view, 1> search_attrs = {"is_right"};

Spec infer_search(const Op& op, Inputs inputs, const Attrs&) {
  const Spec& sorted = inputs[0]->spec();
  if (sorted.shape.size() != 1) {
    throw Error(ErrorKind::shape, {.where = "searchsorted",
                                   .what = "the sorted elements are " + describe(sorted),
                                   .expected = "one axis",
                                   .got = fmt::format("{}", sorted.shape.size()),
                                   .fix = "Search row by row."});
  }
  if (sorted.dtype != inputs[1]->dtype()) {
    throw Error(ErrorKind::dtype, {.where = std::string(op.name),
                                   .what = "operands of two dtypes",
                                   .expected = std::string(name_of(sorted.dtype)),
                                   .got = std::string(name_of(inputs[1]->dtype())),
                                   .fix = "searchsorted() casts them."});
  }
  return {.dtype = i64,
          .shape = inputs[1]->shape(),
          .is_weak = false,
          .device = common_device(op, inputs)};
}

LibraryCall call_search(Inputs inputs, const Attrs& attrs, const Spec& spec) {
  LibraryCall call = library_call(LibraryCall::Kind::search, inputs, spec);
  call.is_right = attr<bool>(attrs, 0);
  return call;
}

constexpr auto orders = family({
    {.name = "sort",
     .kind = OpKind::index,
     .attr_names = sort_attrs,
     .infer = infer_sort,
     .call = call_sort,
     .gradient = {.rule = sort_rule, .looks_at_inputs = 1},
     .summary = "The elements along an axis in order."},
    {.name = "argsort",
     .kind = OpKind::index,
     .attr_names = argsort_attrs,
     .infer = infer_argsort,
     .call = call_argsort,
     .gradient = {.is_zero = true},
     .summary = "The positions along an axis of its first elements in order."},
    {.name = "searchsorted",
     .kind = OpKind::index,
     .arity = 2,
     .attr_names = search_attrs,
     .infer = infer_search,
     .call = call_search,
     .gradient = {.is_zero = true},
     .summary = "The places of elements among sorted ones."},
});

Tensor first_positions(const Tensor& x, int axis, SortOrder order, int64_t count) {
  return apply(orders["argsort"], {&x}, {int64_t{axis}, order == SortOrder::descending, count});
}

[[noreturn]] void throw_count(const char* where, const Tensor& x, int axis, int64_t k,
                              int64_t least) {
  throw Error(ErrorKind::value,
              {.where = where,
               .what = fmt::format("k = {} along axis {} of {}", k, axis, describe(x)),
               .expected = fmt::format("{} <= k <= {}", least, x.shape()[axis]),
               .got = fmt::format("{}", k),
               .fix = "There are no more elements along that axis."});
}

/// x as the line that is sorted: floating, along its last axis; and its shape without it.
struct SortedLines {
  Tensor values;  ///< sorted
  Shape kept;     ///< with size 1 at the axis
  int axis;
};
SortedLines sorted_lines(const char* where, const Tensor& x, std::optional<Integer> axis) {
  const Tensor numbers = as_floats(x);
  const Tensor lines = axis ? numbers : flatten(numbers);
  const int along = normalize_axis(where, axis.value_or(0), lines.rank());
  if (lines.shape()[along] == 0) {
    throw Error(ErrorKind::shape, {.where = where,
                                   .what = fmt::format("axis {} of {}", along, describe(x)),
                                   .expected = "at least one element",
                                   .got = "none",
                                   .fix = "An empty line has no quantiles."});
  }
  Shape kept = axis ? x.shape() : Shape::filled(x.rank(), 1);
  if (axis) kept[along] = 1;
  return {sort(lines, along), kept, along};
}

/// The result: NaN where the greatest element is.
Tensor unless_nan(const SortedLines& lines, const Tensor& result) {
  const Tensor greatest = slice(lines.values, lines.axis, {.start = -1});
  return where(isnan(greatest), greatest, result);
}

Tensor reduced(const SortedLines& lines, const Tensor& result, KeepDims keep) {
  if (keep == KeepDims::yes) return reshape(result, lines.kept);
  return squeeze(result, lines.axis);
}

/// Between `low` and `high`; exact where they are equal or infinite.
Tensor between(const Tensor& low, const Tensor& high, const Argument& share) {
  return where(low == high, low, low + (high - low) * share);
}

}  // namespace

Tensor sort(const Tensor& x, Integer axis, SortOrder order) {
  const int along = normalize_axis("sort", axis, x.rank());
  return apply(orders["sort"], {&x}, {int64_t{along}, order == SortOrder::descending});
}

Tensor argsort(const Tensor& x, Integer axis, SortOrder order) {
  const int along = normalize_axis("argsort", axis, x.rank());
  return first_positions(x, along, order, x.shape()[along]);
}

Ordered topk(const Tensor& x, Integer k, Integer axis, SortOrder order) {
  const int along = normalize_axis("topk", axis, x.rank());
  if (k < 0 || k > x.shape()[along]) throw_count("topk", x, along, k, 0);
  const Tensor places = first_positions(x, along, order, k);
  return {gather(x, along, places), places};
}

Ordered kthvalue(const Tensor& x, Integer k, Integer axis, KeepDims keep) {
  const int along = normalize_axis("kthvalue", axis, x.rank());
  if (k < 1 || k > x.shape()[along]) throw_count("kthvalue", x, along, k, 1);
  const Tensor places =
      slice(first_positions(x, along, SortOrder::ascending, k), along, {.start = -1});
  const Tensor values = gather(x, along, places);
  if (keep == KeepDims::yes) return {values, places};
  return {squeeze(values, along), squeeze(places, along)};
}

Tensor searchsorted(const Argument& sorted, const Argument& x, Side side) {
  const DType dtype = common_dtype("searchsorted", {&sorted, &x});
  const Promoted line("searchsorted", sorted, dtype), sought("searchsorted", x, dtype);
  return apply(orders["searchsorted"], {line.get(), sought.get()}, {side == Side::right});
}

Tensor bucketize(const Argument& x, const Argument& boundaries, Side side) {
  return searchsorted(boundaries, x, side);
}

Tensor quantile(const Tensor& x, double q, std::optional<Integer> axis, KeepDims keep) {
  if (!(q >= 0 && q <= 1)) {
    throw Error(ErrorKind::value, {.where = "quantile",
                                   .what = "q",
                                   .expected = "0 <= q <= 1",
                                   .got = fmt::format("{}", q),
                                   .fix = "Divide percents by 100."});
  }
  const SortedLines lines = sorted_lines("quantile", x, axis);
  const double place = q * static_cast<double>(lines.values.shape()[lines.axis] - 1);
  const auto low = static_cast<int64_t>(std::floor(place));
  const auto high = static_cast<int64_t>(std::ceil(place));
  const auto at = [&](int64_t i) { return slice(lines.values, lines.axis, {i, i + 1}); };
  const Tensor result =
      low == high ? at(low) : between(at(low), at(high), place - std::floor(place));
  return reduced(lines, unless_nan(lines, result), keep);
}

Tensor quantile(const Tensor& x, const Tensor& q, std::optional<Integer> axis, KeepDims keep) {
  const SortedLines lines = sorted_lines("quantile", x, axis);
  const Tensor shares = reshape(cast(q, f64), {-1});
  const Tensor is_share = (shares >= 0.0) & (shares <= 1.0);
  const Tensor place =
      where(is_share, shares, 0) * static_cast<double>(lines.values.shape()[lines.axis] - 1);
  const auto at = [&](const Tensor& i) { return take(lines.values, cast(i, i64), lines.axis); };
  const DType dtype = lines.values.dtype();
  // The axis of q where that of the lines was.
  Shape along = Shape::filled(lines.values.rank(), 1);
  along[lines.axis] = -1;
  const Tensor share = reshape(cast(place - floor(place), dtype), along);
  const Tensor found = unless_nan(lines, between(at(floor(place)), at(ceil(place)), share));
  const Tensor result =
      where(reshape(is_share, along), found, std::numeric_limits<double>::quiet_NaN());
  const Tensor first = moveaxis(result, lines.axis, 0);
  Shape shape = q.shape();
  for (int i = 0; i < lines.kept.size(); ++i) {
    const bool is_reduced = !axis || i == lines.axis;
    if (!is_reduced || keep == KeepDims::yes) shape.push_back(lines.kept[i]);
  }
  return reshape(first, shape);
}

Tensor median(const Tensor& x, std::optional<Integer> axis, KeepDims keep) {
  const SortedLines lines = sorted_lines("median", x, axis);
  const int64_t size = lines.values.shape()[lines.axis];
  const auto at = [&](int64_t i) { return slice(lines.values, lines.axis, {i, i + 1}); };
  const Tensor middle = at(size / 2);
  const Tensor result = size % 2 == 1 ? middle : at(size / 2 - 1) * 0.5 + middle * 0.5;
  return reduced(lines, unless_nan(lines, result), keep);
}

std::span<const Op> order_ops() {
  return orders.ops;
}

}  // namespace nitinol
