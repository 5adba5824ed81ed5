#include "tests/op_order.h"

#include "eager/ops/ops.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace nitinol::test {
namespace {

using Real = long double;

bool is_less(Real a, Real b) {
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

int64_t number(const Attrs& attrs, std::size_t i) {
  return std::get<int64_t>(attrs[i]);
}

/// sort, or argsort of the first ones: by counting what comes before each.
Elements sorted_along(const Op& op, const Elements& x, const Attrs& attrs, const Spec& result) {
  Elements out = {result.dtype, result.shape,
                  std::vector<Real>(static_cast<std::size_t>(element_count(result.shape)))};
  const auto axis = static_cast<int>(number(attrs, 0));
  const bool is_descending = std::get<bool>(attrs[1]);
  std::vector<Real> row(static_cast<std::size_t>(x.shape[axis]));
  for_each_index(result.shape, [&](const Dims& index) {
    if (index[axis] != 0) return;
    Dims at = index;
    for (; at[axis] < x.shape[axis]; ++at[axis]) row[static_cast<std::size_t>(at[axis])] = x.at(at);
    for (std::size_t from = 0; from < row.size(); ++from) {
      int64_t before = 0;
      for (std::size_t other = 0; other < row.size(); ++other) {
        const Real a = row[other], b = row[from];
        const bool is_first = is_descending ? is_less(b, a) : is_less(a, b);
        const bool is_equal = !is_less(a, b) && !is_less(b, a);
        before += is_first || (is_equal && other < from) ? 1 : 0;
      }
      if (before >= result.shape[axis]) continue;
      at[axis] = before;
      out.values[out.place(at)] = op.name == "sort" ? row[from] : static_cast<Real>(from);
    }
  });
  return out;
}

Elements searched(std::span<const Elements> inputs, const Attrs& attrs, const Spec& result) {
  Elements out = {result.dtype, result.shape, {}};
  for (const Real x : inputs[1].values) {
    const auto before = std::ranges::count_if(inputs[0].values, [&](Real y) {
      return std::get<bool>(attrs[0]) ? !is_less(x, y) : is_less(y, x);
    });
    out.values.push_back(static_cast<Real>(before));
  }
  return out;
}

Elements chosen(const Op& op, std::span<const Elements> inputs, const Spec& result) {
  Elements out = {result.dtype, result.shape, {}};
  std::vector<int64_t> rows;
  const Elements& mask = inputs.back();
  for (int64_t i = 0; i < mask.shape[0]; ++i) {
    if (mask.values[static_cast<std::size_t>(i)] != 0) rows.push_back(i);
  }
  for_each_index(result.shape, [&](const Dims& index) {
    const auto place = static_cast<std::size_t>(index[0]);
    if (op.name == "nonzero") {
      out.values.push_back(place < rows.size() ? static_cast<Real>(rows[place]) : -1);
      return;
    }
    Dims from = index;
    if (place < rows.size()) from[0] = rows[place];
    out.values.push_back(place < rows.size() ? inputs[0].at(from) : 0);
  });
  return out;
}

Elements scattered_into(std::span<const Elements> inputs, const Attrs& attrs, const Spec& result) {
  Elements out = inputs[0];
  const Elements &values = inputs[1], &indices = inputs[2];
  const auto arrival = static_cast<Arrival>(number(attrs, 0));
  const Strides strides = strides_of(result.shape);
  for_each_index(values.shape, [&](const Dims& from) {
    Dims which, to;
    for (int i = 0; i < indices.shape.size(); ++i) which.push_back(from[i]);
    const auto row = static_cast<int64_t>(indices.at(which));
    to.push_back(row < 0 ? row + result.shape[0] : row);
    for (int i = indices.shape.size(); i < from.size(); ++i) to.push_back(from[i]);
    int64_t place = 0;
    for (int i = 0; i < to.size(); ++i) place += to[i] * strides[i];
    Real& is = out.values[static_cast<std::size_t>(place)];
    const Real value = values.at(from);
    const bool has_nan = std::isnan(is) || std::isnan(value);
    if (arrival == Arrival::set) is = value;
    if (arrival == Arrival::add) is = wrapped(result.dtype, is + value);
    if (arrival == Arrival::multiply) is = wrapped(result.dtype, is * value);
    if (arrival == Arrival::maximum) is = has_nan ? is + value : std::max(is, value);
    if (arrival == Arrival::minimum) is = has_nan ? is + value : std::min(is, value);
  });
  return out;
}

}  // namespace

std::vector<Sample> scatter_samples(const Op&) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(any_dtype)) {
    for (int64_t arrival = 0; arrival < 5; ++arrival) {
      if (dtype == boolean && arrival > 0) continue;
      const bool is_sum = arrival == 1, is_product = arrival == 2;
      const auto add = [&](const Shape& x, const Tensor& indices, const Shape& values) {
        const Tensor base = random_values(dtype, x, 36);
        out.push_back({.inputs = {base, random_values(dtype, values, 37), indices},
                       .attrs = {arrival},
                       .ulps = is_sum || is_product ? 4.0 : 1,
                       .absolute = is_sum ? 4.0 : 0});
      };
      add({4, 3, 2}, tensor({{0, 3, -1}, {1, 3, 3}}, i64), {2, 3, 3, 2});
      add({5}, tensor({0, 3, 3, 1, -4, 0}, i64), {6});
      add({3, 300}, tensor({2, 0, 2}, i64), {3, 300});
      add({4}, tensor(2, i64), {});
      add({4, 3}, zeros({0}, i64), {0, 3});
      add({2, 0}, tensor({1, 1}, i64), {2, 0});
      if (arrival < 3) continue;  // extremes: of every pair of edge values
      const Tensor edges = edge_values(dtype);
      const int64_t count = edges.shape()[0];
      out.push_back({.inputs = {repeat(edges, count), tile(edges, {count}), arange(count * count)},
                     .attrs = {arrival},
                     .ulps = 0,
                     .absolute = 0});
    }
  }
  return out;
}

std::vector<Sample> sort_samples(const Op& op) {
  const bool counts = op.name == "argsort";
  std::vector<Sample> out;
  const auto add = [&](const Tensor& x, int64_t axis, bool is_descending, int64_t count) {
    Sample sample = {.inputs = {x}, .attrs = {axis, is_descending}, .ulps = 0};
    if (counts) sample.attrs.emplace_back(count);
    out.push_back(sample);
  };
  for (const DType dtype : list_of(any_dtype)) {
    const Tensor edges = edge_values(dtype);
    add(concat({edges, edges}), 0, false, 2 * edges.size());
    add(concat({edges, edges}), 0, true, 2 * edges.size());
    for (const auto& [shape, axis, count] :
         std::vector<std::tuple<Shape, int64_t, int64_t>>{{{3, 4}, 1, 4},
                                                          {{5, 3}, 0, 2},
                                                          {{2, 70, 3}, 1, 5},
                                                          {{1}, 0, 1},
                                                          {{40, 35}, 0, 40},
                                                          {{2, 300}, 1, 9},
                                                          {{3, 0}, 1, 0},
                                                          {{0, 3}, 1, 3}}) {
      add(random_values(dtype, shape, 31), axis, count % 2 == 0, count);
    }
  }
  return out;
}

std::vector<Sample> search_samples(const Op&) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(any_dtype)) {
    for (const bool is_right : {false, true}) {
      const Tensor edges = edge_values(dtype);
      const auto add = [&](const Tensor& line, const Tensor& x) {
        out.push_back({.inputs = {sort(line, 0), x}, .attrs = {is_right}, .ulps = 0});
      };
      add(edges, edges);
      add(random_values(dtype, {57}, 32), random_values(dtype, {3, 1, 19}, 33));
      add(zeros({0}, dtype), edges);
      add(edges, zeros({2, 0}, dtype));
      add(edges, reshape(edges[0], {}));
    }
  }
  return out;
}

std::vector<Sample> mask_samples(const Op& op) {
  const bool has_rows = op.name == "masked_select";
  std::vector<Sample> out;
  for (const DType dtype : has_rows ? list_of(any_dtype) : std::vector<DType>{boolean}) {
    for (const auto& [shape, rows] : std::vector<std::pair<Shape, int64_t>>{{{7}, 3},
                                                                            {{300}, 200},
                                                                            {{6, 5}, 3},
                                                                            {{9, 2, 3}, 9},
                                                                            {{4}, 0},
                                                                            {{0}, 2},
                                                                            {{0, 3}, 1},
                                                                            {{3, 0}, 2}}) {
      const Tensor mask = random_values(boolean, {shape[0]}, 34);
      Sample sample = {.inputs = {mask}, .attrs = {rows}, .ulps = 0};
      if (has_rows) sample.inputs = {random_values(dtype, shape, 35), mask};
      out.push_back(sample);
    }
  }
  return out;
}

Elements ordered(const Op& op, std::span<const Elements> inputs, const Attrs& attrs,
                 const Spec& result) {
  if (op.name == "scatter") return scattered_into(inputs, attrs, result);
  if (op.name == "searchsorted") return searched(inputs, attrs, result);
  if (op.name == "masked_select" || op.name == "nonzero") return chosen(op, inputs, result);
  return sorted_along(op, inputs[0], attrs, result);
}

}  // namespace nitinol::test
