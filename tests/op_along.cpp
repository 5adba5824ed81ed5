#include "tests/op_along.h"

#include "eager/ops/ops.h"

#include <algorithm>
#include <cmath>

namespace nitinol::test {
namespace {

int axis_of(const Attrs& attrs) {
  return static_cast<int>(std::get<int64_t>(attrs[0]));
}

/// Indices of `rows` from both ends, some of them more than once.
Tensor some_indices(const Shape& shape, int64_t rows) {
  const Tensor numbers = arange(element_count(shape));
  return reshape(remainder(numbers * 7 + 3, 2 * rows) - rows, shape);
}

/// A tensor and indices of it along an axis.
struct Along {
  Shape data;
  int64_t axis;
  Shape indices;
};
const std::vector<Along> cases = {{{5}, 0, {3}},
                                  {{3, 4}, 1, {3, 6}},
                                  {{3, 4}, 0, {2, 4}},
                                  {{2, 3, 4}, 1, {2, 5, 4}},
                                  {{2, 3, 5}, 2, {2, 3, 1}},
                                  {{1, 1}, 0, {1, 1}},
                                  {{7, 1}, 0, {4, 1}},
                                  {{4, 70}, 0, {3, 70}},
                                  {{2, 2, 1, 3, 2}, 3, {2, 2, 1, 2, 2}},
                                  {{3, 4}, 1, {3, 0}},
                                  {{0, 4}, 1, {0, 2}}};

/// Calls f with each index of `shape` and the index in the other tensor that the index says.
template <class F>
void for_each_pair(const Elements& indices, int axis, int64_t rows, const F& f) {
  for_each_index(indices.shape, [&](const Dims& index) {
    const auto row = static_cast<int64_t>(indices.at(index));
    Dims other = index;
    other[axis] = row < 0 ? row + rows : row;
    f(index, other);
  });
}

long double joined(const Op& op, long double a, long double b) {
  if (op.name == "cumsum") return a + b;
  if (op.name == "cumprod") return a * b;
  if (op.name == "logcumsumexp") {
    return a == b ? a + std::log(2.0L) : std::max(a, b) + std::log1p(std::exp(-std::fabs(a - b)));
  }
  if (std::isnan(a) || std::isnan(b)) return a + b;
  if (a == b) return std::signbit(a) == (op.name == "cummax") ? b : a;  // -0 is less than 0
  return op.name == "cummax" ? std::max(a, b) : std::min(a, b);
}

int64_t flat_of(const Shape& shape, const Dims& index) {
  const Strides strides = strides_of(shape);
  int64_t flat = 0;
  for (int i = 0; i < shape.size(); ++i) flat += index[i] * strides[i];
  return flat;
}

}  // namespace

std::vector<Sample> gather_samples(const Op&) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(any_dtype)) {
    for (const auto& [data, axis, indices] : cases) {
      out.push_back({.inputs = {random_values(dtype, data, 21),
                                some_indices(indices, data[static_cast<int>(axis)])},
                     .attrs = {axis},
                     .ulps = 0});
    }
  }
  return out;
}

std::vector<Sample> scatter_add_along_samples(const Op& op) {
  std::vector<Sample> out;
  for (const DType dtype : list_of(op.accepts)) {
    for (const auto& [result, axis, values] : cases) {
      const int64_t rows = result[static_cast<int>(axis)];
      out.push_back({.inputs = {random_values(dtype, values, 22), some_indices(values, rows)},
                     .attrs = {axis, rows},
                     .ulps = 2,
                     .absolute = 2});
    }
  }
  return out;
}

std::vector<Sample> scan_samples(const Op& op) {
  std::vector<Sample> out;
  const bool is_extreme = op.name == "cummax" || op.name == "cummin";
  const bool is_log = op.name == "logcumsumexp";
  for (const DType dtype : list_of(op.accepts)) {
    if (is_extreme || is_log) {
      const double ulps = is_log ? 2 : 0;
      out.push_back({.inputs = {edge_values(dtype)}, .attrs = {int64_t{0}}, .ulps = ulps});
    }
    for (const auto& [shape, axis] : std::vector<std::pair<Shape, int64_t>>{{{5}, 0},
                                                                            {{3, 4}, 1},
                                                                            {{3, 4}, 0},
                                                                            {{2, 3, 4}, 1},
                                                                            {{9, 5, 2}, 0},
                                                                            {{1}, 0},
                                                                            {{3, 1}, 1},
                                                                            {{4, 1}, 0},
                                                                            {{40, 70}, 0},
                                                                            {{6, 300}, 1},
                                                                            {{3, 0}, 1},
                                                                            {{0, 3}, 1}}) {
      const auto terms = static_cast<double>(shape[static_cast<int>(axis)]);
      Tensor x = random_values(dtype, shape, 23);
      if (op.name == "cumprod" && is_floating(dtype)) x = cast(x * 0.05 + 1, dtype);
      out.push_back({.inputs = {x},
                     .attrs = {axis},
                     .ulps = is_extreme             ? 0
                             : op.name == "cumprod" ? 2 * terms
                                                    : 1,
                     .absolute = op.name == "cumsum" ? terms
                                 : is_log            ? 4
                                                     : 0});
    }
  }
  return out;
}

Elements gathered(std::span<const Elements> inputs, const Attrs& attrs, const Spec& result) {
  Elements out = {result.dtype, result.shape, {}};
  const int axis = axis_of(attrs);
  for_each_pair(inputs[1], axis, inputs[0].shape[axis],
                [&](const Dims&, const Dims& from) { out.values.push_back(inputs[0].at(from)); });
  return out;
}

Elements scattered_along(std::span<const Elements> inputs, const Attrs& attrs, const Spec& result) {
  Elements out = {result.dtype, result.shape, {}};
  out.values.resize(static_cast<std::size_t>(element_count(result.shape)));
  const int axis = axis_of(attrs);
  for_each_pair(inputs[1], axis, result.shape[axis], [&](const Dims& from, const Dims& to) {
    long double& sum = out.values[static_cast<std::size_t>(flat_of(result.shape, to))];
    sum = wrapped(result.dtype, sum + inputs[0].at(from));
  });
  return out;
}

Elements scanned(const Op& op, const Elements& x, const Attrs& attrs) {
  Elements out = {x.dtype, x.shape, {}};
  const int axis = axis_of(attrs);
  for_each_index(x.shape, [&](const Dims& index) {
    Dims from = index;
    from[axis] = 0;
    long double all = x.at(from);
    while (++from[axis] <= index[axis]) all = wrapped(x.dtype, joined(op, all, x.at(from)));
    out.values.push_back(all);
  });
  return out;
}

Elements likelihood(std::span<const Elements> inputs, const Attrs& attrs, const Spec& result) {
  const bool is_gradient = inputs.size() == 3;
  const Elements &scores = inputs[is_gradient ? 1 : 0], &labels = inputs.back();
  const int64_t classes = scores.shape.back();
  const long double smoothing = std::get<double>(attrs[0]);
  Elements out = {result.dtype, result.shape, {}};
  for (std::size_t row = 0; row < labels.values.size(); ++row) {
    const auto first = scores.values.begin() + static_cast<std::ptrdiff_t>(row) * classes;
    const std::vector<long double> values(first, first + classes);
    long double total = 0;
    for (const long double value : values) total += std::exp(value);
    const long double label = labels.values[row];
    long double sum = 0;
    for (int64_t k = 0; k < classes; ++k) {
      const long double value = values[static_cast<std::size_t>(k)];
      const long double wanted = (label == static_cast<long double>(k) ? 1 - smoothing : 0) +
                                 smoothing / static_cast<long double>(classes);
      sum += wanted * (value - std::log(total));
      if (is_gradient)
        out.values.push_back(inputs[0].values[row] * (wanted - std::exp(value - std::log(total))));
    }
    if (!is_gradient) out.values.push_back(sum);
  }
  return out;
}

}  // namespace nitinol::test
