#include "eager/ops/products.h"

#include "core/autocast.h"
#include "core/error.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/define.h"
#include "eager/ops/family.h"
#include "eager/ops/join.h"
#include "eager/ops/masks.h"
#include "eager/ops/matmul.h"
#include "eager/ops/reduce.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <string_view>

namespace nitinol {
namespace {

[[noreturn]] void throw_operands(const char* where, const Tensor& a, const Tensor& b,
                                 const std::string& expected, const char* fix = "") {
  throw Error(ErrorKind::shape, {.where = where,
                                 .what = "operands " + describe(a) + " and " + describe(b),
                                 .expected = expected,
                                 .got = to_string(a.shape()) + " and " + to_string(b.shape()),
                                 .fix = fix});
}

/// The axes of x that are not in `axes`, which may come before or after them.
Dims others(const Tensor& x, const Dims& axes) {
  Dims rest;
  for (int64_t i = 0; i < x.rank(); ++i) {
    bool is_one = false;
    for (const int64_t axis : axes) is_one = is_one || axis == i;
    if (!is_one) rest.push_back(i);
  }
  return rest;
}

int64_t size_over(const Tensor& x, const Dims& axes) {
  int64_t size = 1;
  for (const int64_t axis : axes) size *= x.shape()[static_cast<int>(axis)];
  return size;
}

Dims joined(const Dims& a, const Dims& b) {
  Dims all = a;
  for (const int64_t i : b) all.push_back(i);
  return all;
}

constexpr std::array<std::string_view, 1> axis_attrs = {"axis"};
constexpr std::array<std::string_view, 3> norm_attrs = {"axes", "keepdims", "p"};

/// In the dtype of both. The axis counts from the last one.
Tensor expand_vecdot(Inputs inputs, const Attrs& attrs) {
  return cast(sum(*inputs[0] * *inputs[1], attr<int64_t>(attrs, 0)), inputs[0]->dtype());
}

Tensor expand_vector_norm(Inputs inputs, const Attrs& attrs) {
  const Dims& axes = attr<Dims>(attrs, 0);
  const KeepDims keep = attr<bool>(attrs, 1) ? KeepDims::yes : KeepDims::no;
  const auto p = attr<double>(attrs, 2);
  const Tensor sizes = abs(*inputs[0]);
  if (p == std::numeric_limits<double>::infinity()) return max(sizes, axes, keep);
  if (p == -std::numeric_limits<double>::infinity()) return min(sizes, axes, keep);
  if (p == 0) return cast(count_nonzero(sizes, axes, keep), sizes.dtype());
  if (p == 1) return sum(sizes, axes, keep);
  if (p == 2) {
    // The gradient of a norm that is 0 is 0, where that of the square root would be infinite.
    const Tensor squares = sum(square(sizes), axes, keep);
    return where(squares == 0, squares, sqrt(where(squares == 0, 1, squares)));
  }
  return pow(sum(pow(sizes, p), axes, keep), 1 / p);
}

constexpr auto products_in_full = std::to_array<std::string_view>({"vector_norm"});
constexpr auto products = family<products_in_full>({
    composite("vecdot", axis_attrs, expand_vecdot, "sum(a * b) along an axis.", 2),
    composite("vector_norm", norm_attrs, expand_vector_norm, "sum(|x|^p)^(1/p) over axes."),
});

}  // namespace

Tensor tensordot(const Tensor& a, const Tensor& b, Integer axes) {
  if (axes < 0 || axes > a.rank() || axes > b.rank()) {
    throw Error(ErrorKind::value, {.where = "tensordot",
                                   .what = fmt::format("{} axes of {} and {}", int64_t{axes},
                                                       describe(a), describe(b)),
                                   .expected = fmt::format("0 to {}", std::min(a.rank(), b.rank())),
                                   .got = fmt::format("{}", int64_t{axes}),
                                   .fix = "Or name the axes of each."});
  }
  Dims last, first;
  for (int64_t i = 0; i < axes; ++i) {
    last.push_back(a.rank() - axes + i);
    first.push_back(i);
  }
  return tensordot(a, b, last, first);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& a_axes, const Dims& b_axes) {
  Dims from, to;
  for (const int64_t axis : a_axes) from.push_back(normalize_axis("tensordot", axis, a.rank()));
  for (const int64_t axis : b_axes) to.push_back(normalize_axis("tensordot", axis, b.rank()));
  bool fits = from.size() == to.size();
  for (int i = 0; fits && i < from.size(); ++i)
    fits = a.shape()[static_cast<int>(from[i])] == b.shape()[static_cast<int>(to[i])];
  if (!fits) {
    throw_operands(
        "tensordot", a, b,
        fmt::format("equal sizes of axes {} and {}", to_string(a_axes), to_string(b_axes)),
        "Axes are summed pair by pair.");
  }
  if (!from.empty()) {
    (void)normalize_axes("tensordot", from, a.rank());  // each once
    (void)normalize_axes("tensordot", to, b.rank());
  }
  const Dims rows = others(a, from), columns = others(b, to);
  const Tensor left =
      reshape(permute(a, joined(rows, from)), {size_over(a, rows), size_over(a, from)});
  const Tensor right =
      reshape(permute(b, joined(to, columns)), {size_over(b, to), size_over(b, columns)});
  Shape shape;
  for (const int64_t axis : rows) shape.push_back(a.shape()[static_cast<int>(axis)]);
  for (const int64_t axis : columns) shape.push_back(b.shape()[static_cast<int>(axis)]);
  return reshape(matmul(left, right), shape);
}

Tensor vecdot(const Tensor& a, const Tensor& b, Integer axis) {
  const int rank = std::min(a.rank(), b.rank());
  const int along = normalize_axis("vecdot", axis, rank) - rank;
  if (a.shape()[a.rank() + along] != b.shape()[b.rank() + along])
    throw_operands("vecdot", a, b, fmt::format("equal sizes of axis {}", along));
  const DType dtype = promote("vecdot", a.dtype(), b.dtype());
  const Tensor x = cast(a, dtype), y = cast(b, dtype);
  return apply(products["vecdot"], {&x, &y}, {int64_t{along}});
}

Tensor outer(const Tensor& a, const Tensor& b) {
  return unsqueeze(flatten(a), 1) * flatten(b);
}

Tensor inner(const Tensor& a, const Tensor& b) {
  if (a.rank() == 0 || b.rank() == 0) return a * b;
  if (a.shape().back() != b.shape().back())
    throw_operands("inner", a, b, "equal sizes of the last axes");
  return tensordot(a, b, {-1}, {-1});
}

Tensor kron(const Tensor& a, const Tensor& b) {
  const int rank = std::max(a.rank(), b.rank());
  Shape left, right, shape;
  for (int i = 0; i < rank; ++i) {
    const int of_a = i - (rank - a.rank()), of_b = i - (rank - b.rank());
    const int64_t m = of_a < 0 ? 1 : a.shape()[of_a], n = of_b < 0 ? 1 : b.shape()[of_b];
    left.push_back(m);
    left.push_back(1);
    right.push_back(1);
    right.push_back(n);
    shape.push_back(m * n);
  }
  return reshape(reshape(a, left) * reshape(b, right), shape);
}

Tensor cross(const Tensor& a, const Tensor& b, Integer axis) {
  const int rank = std::min(a.rank(), b.rank());
  const int along = normalize_axis("cross", axis, rank) - rank;
  if (a.shape()[a.rank() + along] != 3 || b.shape()[b.rank() + along] != 3)
    throw_operands("cross", a, b, fmt::format("3 elements along axis {}", along));
  const auto part = [along](const Tensor& x, int64_t i) {
    return slice(x, int64_t{along}, {i % 3, i % 3 + 1});
  };
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < 3; ++i)
    parts.push_back(part(a, i + 1) * part(b, i + 2) - part(a, i + 2) * part(b, i + 1));
  return concat(parts, int64_t{along});
}

Tensor vector_norm(const Tensor& x, const Axes& axes, double p, KeepDims keep) {
  const Tensor given = as_floats(x);
  return apply(products["vector_norm"], {&given}, {axes.dims(), keep == keepdims, p});
}

Tensor matrix_norm(const Tensor& x, MatrixNorm norm, KeepDims keep) {
  if (x.rank() < 2) {
    throw Error(ErrorKind::shape, {.where = "matrix_norm",
                                   .what = describe(x),
                                   .expected = "matrices: at least two axes",
                                   .got = fmt::format("{}", x.rank()),
                                   .fix = "vector_norm() is for vectors."});
  }
  if (norm == MatrixNorm::frobenius) return vector_norm(x, {-2, -1}, 2, keep);
  const bool is_of_columns = norm == MatrixNorm::one || norm == MatrixNorm::minus_one;
  const bool is_largest = norm == MatrixNorm::one || norm == MatrixNorm::infinity;
  const Tensor sums = sum(abs(as_floats(x)), is_of_columns ? -2 : -1, keepdims);
  return is_largest ? max(sums, {-2, -1}, keep) : min(sums, {-2, -1}, keep);
}

Tensor matrix_power(const Tensor& x, Integer n) {
  if (x.rank() < 2 || x.shape()[x.rank() - 1] != x.shape()[x.rank() - 2]) {
    throw Error(ErrorKind::shape, {.where = "matrix_power",
                                   .what = describe(x),
                                   .expected = "square matrices",
                                   .got = to_string(x.shape()),
                                   .fix = {}});
  }
  if (n < 0) {
    throw Error(ErrorKind::value, {.where = "matrix_power",
                                   .what = "a negative power needs the inverse",
                                   .expected = "n >= 0",
                                   .got = fmt::format("{}", int64_t{n}),
                                   .fix = {}});
  }
  Tensor result, square = x;
  for (int64_t left = n; left > 0; left /= 2) {
    if (left % 2 == 1) result = result.is_defined() ? matmul(result, square) : square;
    if (left > 1) square = matmul(square, square);
  }
  if (result.is_defined()) return result;
  return expand(eye(x.shape().back(), {}, 0, x.dtype(), x.device()), x.shape());
}

std::span<const Op> products_ops() {
  return products.ops;
}

}  // namespace nitinol
