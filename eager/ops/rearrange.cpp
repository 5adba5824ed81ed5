#include "eager/ops/rearrange.h"

#include "core/error.h"
#include "eager/infer.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/create.h"
#include "eager/ops/index.h"
#include "eager/ops/join.h"
#include "eager/ops/reduce.h"
#include "eager/ops/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <span>

namespace nitinol {
namespace {

/// Throws Error(value) unless `number`, which `what` names, is at least `least`.
void check_at_least(int64_t least, const char* where, const char* what, int64_t number) {
  if (number >= least) return;
  throw Error(ErrorKind::value, {.where = where,
                                 .what = what,
                                 .expected = fmt::format("at least {}", least),
                                 .got = fmt::format("{}", number),
                                 .fix = "Check how it is computed."});
}

/// Throws Error(shape) for fewer than two axes.
void check_matrices(const char* where, const Tensor& x) {
  if (x.rank() >= 2) return;
  throw Error(ErrorKind::shape,
              {.where = where,
               .what = describe(x),
               .expected = "matrices: at least two axes",
               .got = fmt::format("{}", x.rank()),
               .fix = "unsqueeze() adds an axis; eye() and where() make a matrix of a vector."});
}

/// No memory holds so many.
constexpr int64_t most_elements = int64_t{1} << 44;

/// x moved by `shift` along axis i.
Tensor rolled(const Tensor& x, int64_t shift, int i) {
  const int64_t size = x.shape()[i];
  if (size == 0) return x;
  const int64_t first = (size - shift % size) % size;  // what comes to the start
  if (first == 0) return x;
  return concat({slice(x, i, {first, size}), slice(x, i, {0, first})}, i);
}

/// x so many times along axis i: as a new axis `at`, i or i + 1, which is joined with it.
Tensor repeated(const Tensor& x, int64_t count, int i, int at) {
  Shape sizes = x.shape(), shape = sizes;
  sizes.insert(at, count);
  const Tensor apart = expand(unsqueeze(x, at), sizes);  // or an Error, if memory does not hold it
  shape[i] *= count;
  return reshape(apart, shape);
}

/// For the places of matrices: the row, and the row in which diagonal k crosses the column.
struct Crossings {
  Tensor row, crossed;
};
Crossings crossings_of(const Tensor& x, int64_t k) {
  const int64_t rows = x.shape()[x.rank() - 2], columns = x.shape()[x.rank() - 1];
  // Beyond the corners all diagonals are alike.
  return {unsqueeze(arange(rows, {}, x.device()), 1),
          arange(columns, {}, x.device()) - std::clamp(k, -rows, columns)};
}

/// How long the result of repeat() is. Throws Error(dtype), Error(shape), Error(value) for numbers
/// that are none.
int64_t total_of(const Tensor& repeats, const std::vector<int64_t>& counts, int64_t size) {
  int64_t total = 0;
  for (int64_t k = 0; k < size; ++k) {
    const int64_t count = counts[counts.size() == 1 ? 0 : static_cast<std::size_t>(k)];
    check_at_least(0, "repeat", "a number of repetitions", count);
    if (!__builtin_add_overflow(total, count, &total) && total <= most_elements) continue;
    throw Error(ErrorKind::shape, {.where = "repeat",
                                   .what = fmt::format("the numbers in {}", describe(repeats)),
                                   .expected = "a result that fits in memory",
                                   .got = fmt::format("more than {} elements", most_elements)});
  }
  return total;
}

}  // namespace

Tensor moveaxis(const Tensor& x, const Axes& source, const Axes& destination) {
  const auto places_of = [&x](const Axes& axes) {
    Dims places;
    for (const int64_t axis : axes.dims())
      places.push_back(normalize_axis("moveaxis", axis, x.rank()));
    if (!axes.dims().empty()) (void)normalize_axes("moveaxis", axes.dims(), x.rank());  // each once
    return places;
  };
  const Dims from = places_of(source), to = places_of(destination);
  if (from.size() != to.size()) {
    throw Error(ErrorKind::shape, {.where = "moveaxis",
                                   .what = fmt::format("axes {} to {}", to_string(source.dims()),
                                                       to_string(destination.dims())),
                                   .expected = "as many places as axes",
                                   .got = fmt::format("{} for {}", to.size(), from.size()),
                                   .fix = "Name a place for each axis that is moved."});
  }
  Dims order = Dims::filled(x.rank(), -1);
  for (int i = 0; i < from.size(); ++i) order[static_cast<int>(to[i])] = from[i];
  int64_t next = 0;
  for (int64_t& axis : order) {
    if (axis >= 0) continue;
    while (std::ranges::find(from, next) != from.end()) ++next;
    axis = next++;
  }
  return permute(x, order);
}

Tensor roll(const Tensor& x, const Dims& shift, const Axes& axis) {
  if (axis.dims().empty()) {
    Tensor line = flatten(x);
    for (const int64_t one : shift) line = rolled(line, one, 0);
    return reshape(line, x.shape());
  }
  if (shift.size() != 1 && shift.size() != axis.dims().size()) {
    throw Error(
        ErrorKind::shape,
        {.where = "roll",
         .what = fmt::format("shifts {} along axes {}", to_string(shift), to_string(axis.dims())),
         .expected = "one shift, or one for each axis",
         .got = fmt::format("{} for {} axes", shift.size(), axis.dims().size()),
         .fix = "Name an axis for each shift."});
  }
  Tensor result = x;
  for (int i = 0; i < axis.dims().size(); ++i) {
    result = rolled(result, shift[shift.size() == 1 ? 0 : i],
                    normalize_axis("roll", axis.dims()[i], x.rank()));
  }
  return result;
}

Tensor repeat(const Tensor& x, Integer repeats, std::optional<Integer> axis) {
  check_at_least(0, "repeat", "the number of repetitions", repeats);
  if (!axis) return repeat(flatten(x), repeats, 0);
  const int i = normalize_axis("repeat", *axis, x.rank());
  return repeated(x, repeats, i, i + 1);
}

Tensor repeat(const Tensor& x, const Tensor& repeats, std::optional<Integer> axis) {
  if (!axis) return repeat(flatten(x), repeats, 0);
  const int i = normalize_axis("repeat", *axis, x.rank());
  const int64_t size = x.shape()[i];
  if (repeats.rank() != 1 || (repeats.size() != size && repeats.size() != 1)) {
    throw Error(ErrorKind::shape,
                {.where = "repeat",
                 .what = fmt::format("{} for axis {} of {}", describe(repeats), i, describe(x)),
                 .expected = fmt::format("{} numbers, or one", size),
                 .got = describe(repeats),
                 .fix = "Give a number for each element along the axis."});
  }
  if (!is_integer(repeats.dtype())) {
    throw Error(ErrorKind::dtype, {.where = "repeat",
                                   .what = "the numbers of repetitions",
                                   .expected = "integers",
                                   .got = describe(repeats),
                                   .fix = "Round and cast them first."});
  }
  const std::vector<int64_t> counts = cast(repeats, i64).to_vector<int64_t>();
  std::vector<int64_t> places;
  places.reserve(static_cast<std::size_t>(total_of(repeats, counts, size)));
  for (int64_t k = 0; k < size; ++k) {
    const int64_t count = counts[counts.size() == 1 ? 0 : static_cast<std::size_t>(k)];
    places.insert(places.end(), static_cast<std::size_t>(count), k);
  }
  return take(x,
              from_span(std::span<const int64_t>(places), {static_cast<int64_t>(places.size())})
                  .to(x.device()),
              i);
}

Tensor tile(const Tensor& x, const Dims& repetitions) {
  Tensor result = x;
  while (result.rank() < repetitions.size()) result = unsqueeze(result, 0);
  const int skipped = result.rank() - repetitions.size();
  const auto count_of = [&](int i) { return i < skipped ? 1 : repetitions[i - skipped]; };
  int repeats = 0;
  for (int i = 0; i < result.rank(); ++i) {
    check_at_least(0, "tile", "the number of repetitions", count_of(i));
    if (count_of(i) != 1) ++repeats;
  }
  if (result.rank() + repeats > max_rank) {  // one copy for each
    for (int i = 0; i < result.rank(); ++i) {
      if (count_of(i) != 1) result = repeated(result, count_of(i), i, i);
    }
    return result;
  }
  Shape apart, sizes;  // with an axis of its own for each repetition
  for (int i = 0; i < result.rank(); ++i) {
    if (count_of(i) != 1) {
      apart.push_back(1);
      sizes.push_back(count_of(i));
    }
    apart.push_back(result.shape()[i]);
    sizes.push_back(result.shape()[i]);
  }
  const Tensor all = expand(reshape(result, apart), sizes);  // or an Error, if it is too large
  Shape shape = result.shape();
  for (int i = 0; i < result.rank(); ++i) shape[i] *= count_of(i);
  return reshape(all, shape);
}

std::vector<Tensor> unstack(const Tensor& x, Integer axis) {
  const int i = normalize_axis("unstack", axis, x.rank());
  std::vector<Tensor> parts = split(x, 1, i);
  for (Tensor& part : parts) part = squeeze(part, i);
  return parts;
}

std::vector<Tensor> unbind(const Tensor& x, Integer axis) {
  return unstack(x, axis);
}

Tensor tril(const Tensor& x, Integer k) {
  check_matrices("tril", x);
  const auto [row, crossed] = crossings_of(x, k);
  return where(row >= crossed, x, zeros({}, x.dtype(), x.device()));
}

Tensor triu(const Tensor& x, Integer k) {
  check_matrices("triu", x);
  const auto [row, crossed] = crossings_of(x, k);
  return where(row <= crossed, x, zeros({}, x.dtype(), x.device()));
}

Tensor diagonal(const Tensor& x, Integer offset) {
  check_matrices("diagonal", x);
  const int rank = x.rank();
  const int64_t rows = x.shape()[rank - 2], columns = x.shape()[rank - 1];
  const int64_t k =
      std::clamp<int64_t>(offset, -rows, columns);  // beyond the corners all are empty
  const int64_t start = std::max<int64_t>(-k, 0), first = std::max<int64_t>(k, 0);
  const int64_t count = std::max<int64_t>(std::min(rows - start, columns - first), 0);
  // As one line, the diagonal's elements are a row and one apart.
  const Tensor lines = flatten(x, rank - 2);
  const int64_t from = count == 0 ? 0 : start * columns + first;
  const int64_t stop = count == 0 ? 0 : from + (count - 1) * (columns + 1) + 1;
  return slice(lines, -1, {from, stop, columns + 1});
}

Tensor diag(const Tensor& x, Integer k) {
  if (x.rank() == 2) return diagonal(x, k);
  if (x.rank() != 1) {
    throw Error(ErrorKind::shape, {.where = "diag",
                                   .what = describe(x),
                                   .expected = "one axis or two",
                                   .got = fmt::format("{}", x.rank()),
                                   .fix = "diagonal() takes the diagonals of many matrices."});
  }
  const int64_t offset = std::clamp<int64_t>(k, -most_elements, most_elements);
  const int64_t size = x.size() + std::abs(offset);
  const Tensor lines = flatten(zeros({size, size}, x.dtype(), x.device()));  // throws if too many
  // As one line, the diagonal's elements are a row and one apart.
  const int64_t start = offset > 0 ? offset : -offset * size;
  return reshape(place(lines, x, {x.size() == 0 ? 0 : start}, {x.size()}, {size + 1}),
                 {size, size});
}

Tensor trace(const Tensor& x, Integer offset) {
  check_matrices("trace", x);
  return sum(diagonal(x, offset), -1);
}

Tensor diff(const Tensor& x, Integer n, Integer axis) {
  check_at_least(0, "diff", "how often differences are taken", n);
  const int i = normalize_axis("diff", axis, x.rank());
  Tensor result = x;
  for (int64_t k = 0; k < n && result.shape()[i] > 0; ++k)
    result = slice(result, i, {.start = 1}) - slice(result, i, {.stop = -1});
  return result;
}

Shape broadcast_shapes(std::span<const Shape> shapes) {
  Shape common;
  for (const Shape& shape : shapes) {
    check_shape("broadcast_shapes", shape);
    common = broadcast_shapes("broadcast_shapes", common, shape);
  }
  return common;
}

Shape broadcast_shapes(std::initializer_list<Shape> shapes) {
  return broadcast_shapes(std::span(shapes.begin(), shapes.size()));
}

std::vector<Tensor> broadcast_arrays(std::span<const Tensor> tensors) {
  Shape shape;
  for (const Tensor& tensor : tensors)
    shape = broadcast_shapes("broadcast_arrays", shape, tensor.shape());
  std::vector<Tensor> all;
  for (const Tensor& tensor : tensors) all.push_back(expand(tensor, shape));
  return all;
}

std::vector<Tensor> broadcast_arrays(std::initializer_list<Tensor> tensors) {
  return broadcast_arrays(std::span(tensors.begin(), tensors.size()));
}

std::vector<Tensor> meshgrid(std::span<const Tensor> tensors, bool is_xy) {
  const int rank = static_cast<int>(tensors.size());
  std::vector<Tensor> lines;
  for (int i = 0; i < rank; ++i) {
    const Tensor& line = tensors[static_cast<std::size_t>(i)];
    if (line.rank() > 1) {
      throw Error(ErrorKind::shape, {.where = "meshgrid",
                                     .what = describe(line),
                                     .expected = "at most one axis",
                                     .got = fmt::format("{}", line.rank()),
                                     .fix = "flatten() it."});
    }
    Shape shape = Shape::filled(rank, 1);
    shape[is_xy && i < 2 && rank > 1 ? 1 - i : i] = line.size();
    lines.push_back(reshape(line, shape));
  }
  return broadcast_arrays(lines);
}

std::vector<Tensor> meshgrid(std::initializer_list<Tensor> tensors, bool is_xy) {
  return meshgrid(std::span(tensors.begin(), tensors.size()), is_xy);
}

Tensor swapaxes(const Tensor& x, Integer a, Integer b) {
  return transpose(x, a, b);
}

Tensor rot90(const Tensor& x, Integer k, const Dims& axes) {
  if (axes.size() != 2) {
    throw Error(ErrorKind::value, {.where = "rot90",
                                   .what = "axes " + to_string(axes),
                                   .expected = "two",
                                   .got = fmt::format("{}", axes.size()),
                                   .fix = {}});
  }
  const Dims plane = {normalize_axis("rot90", axes[0], x.rank()),
                      normalize_axis("rot90", axes[1], x.rank())};
  (void)normalize_axes("rot90", plane, x.rank());  // each once
  const int64_t turns = (k % 4 + 4) % 4;
  if (turns == 2) return flip(x, plane);
  if (turns == 0) return x;
  if (turns == 1) return transpose(flip(x, plane[1]), plane[0], plane[1]);
  return flip(transpose(x, plane[0], plane[1]), plane[1]);
}

std::vector<Tensor> chunk(const Tensor& x, Integer count, Integer axis) {
  const int i = normalize_axis("chunk", axis, x.rank());
  check_at_least(1, "chunk", "the number of parts", count);
  if (x.shape()[i] == 0) return std::vector<Tensor>(static_cast<std::size_t>(int64_t{count}), x);
  return split(x, (x.shape()[i] + count - 1) / count, i);
}

Tensor sliding_window(const Tensor& x, Integer axis, Integer size, Integer step) {
  const int i = normalize_axis("sliding_window", axis, x.rank());
  check_at_least(1, "sliding_window", "the size", size);
  check_at_least(1, "sliding_window", "the step", step);
  if (size > x.shape()[i]) {
    throw Error(ErrorKind::shape, {.where = "sliding_window",
                                   .what = fmt::format("windows of {} along axis {} of {}",
                                                       int64_t{size}, i, describe(x)),
                                   .expected = fmt::format("at most {}", x.shape()[i]),
                                   .got = fmt::format("{}", int64_t{size}),
                                   .fix = {}});
  }
  const int64_t windows = (x.shape()[i] - size) / step + 1;
  const Tensor starts = arange(windows, {}, x.device()) * int64_t{step};
  const Tensor places = unsqueeze(starts, 1) + arange(int64_t{size}, {}, x.device());
  return moveaxis(take(x, places, i), i + 1, -1);
}

}  // namespace nitinol
