#include "core/shape.h"

#include "core/error.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ostream>

namespace nitinol {
namespace {

[[noreturn]] void throw_rank(std::size_t rank) {
  throw Error(ErrorKind::unsupported, {.where = "shape",
                                       .what = fmt::format("a tensor of rank {}", rank),
                                       .expected = fmt::format("at most {} dimensions", max_rank),
                                       .got = fmt::format("{}", rank),
                                       .fix = "Merge dimensions with reshape."});
}

}  // namespace

Dims::Dims(std::span<const int64_t> values) {
  if (values.size() > max_rank) throw_rank(values.size());
  size_ = static_cast<int8_t>(values.size());
  std::ranges::copy(values, values_.begin());
}

Dims::Dims(std::initializer_list<Integer> values) {
  if (values.size() > max_rank) throw_rank(values.size());
  size_ = static_cast<int8_t>(values.size());
  std::ranges::copy(values, values_.begin());
}

Dims Dims::filled(int size, int64_t value) {
  if (size > max_rank) throw_rank(static_cast<std::size_t>(size));
  Dims dims;
  dims.size_ = static_cast<int8_t>(size);
  std::fill_n(dims.values_.begin(), size, value);
  return dims;
}

void Dims::push_back(int64_t value) {
  if (size_ == max_rank) throw_rank(max_rank + 1);
  values_[static_cast<std::size_t>(size_++)] = value;
}

void Dims::insert(int position, int64_t value) {
  if (size_ == max_rank) throw_rank(max_rank + 1);
  ++size_;
  std::move_backward(begin() + position, end() - 1, end());
  (*this)[position] = value;
}

void Dims::erase(int position) {
  std::move(begin() + position + 1, end(), begin() + position);
  --size_;
}

int64_t element_count(const Shape& shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return count;
}

Strides strides_of(const Shape& shape) {
  Strides strides = shape;
  int64_t stride = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    strides[i] = stride;
    stride *= std::max<int64_t>(shape[i], 1);
  }
  return strides;
}

bool is_contiguous(const Shape& shape, const Strides& strides) {
  int64_t expected = 1;
  for (int i = shape.size() - 1; i >= 0; --i) {
    if (shape[i] != 1 && strides[i] != expected) return element_count(shape) == 0;
    expected *= shape[i];
  }
  return true;
}

Shape broadcast_shapes(std::string_view where, const Shape& a, const Shape& b) {
  const int rank = std::max(a.size(), b.size());
  Shape out = Dims::filled(rank, 1);
  for (int i = 1; i <= rank; ++i) {
    const int64_t m = i <= a.size() ? a[a.size() - i] : 1;
    const int64_t n = i <= b.size() ? b[b.size() - i] : 1;
    if (m != n && m != 1 && n != 1) {
      throw Error(
          ErrorKind::shape,
          {.where = std::string(where),
           .what = fmt::format("shapes {} and {} do not broadcast", to_string(a), to_string(b)),
           .expected = fmt::format("equal sizes, or 1, in dimension {} from the end", i),
           .got = fmt::format("{} and {}", m, n),
           .fix = "Reshape one of them, or insert a dimension of size 1 with unsqueeze."});
    }
    out[rank - i] = m == 1 ? n : m;
  }
  return out;
}

Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to) {
  Strides out = Dims::filled(to.size(), 0);
  const int shift = to.size() - from.size();
  for (int i = 0; i < from.size(); ++i) {
    if (from[i] != 1) out[i + shift] = strides[i];
  }
  return out;
}

int normalize_axis(std::string_view where, int64_t axis, int rank) {
  if (axis >= -rank && axis < rank) return static_cast<int>(axis < 0 ? axis + rank : axis);
  throw Error(ErrorKind::shape,
              {.where = std::string(where),
               .what = fmt::format("axis {} of a tensor of rank {}", axis, rank),
               .expected = rank == 0 ? "no axis: the tensor has no dimensions"
                                     : fmt::format("{} <= axis < {}", -rank, rank),
               .got = fmt::format("{}", axis),
               .fix = "Axes count from 0, or from -1 at the end."});
}

Dims normalize_axes(std::string_view where, const Dims& axes, int rank) {
  Dims out;
  if (axes.empty()) {
    for (int i = 0; i < rank; ++i) out.push_back(i);
    return out;
  }
  for (const int64_t axis : axes) out.push_back(normalize_axis(where, axis, rank));
  std::sort(out.begin(), out.end());
  if (std::adjacent_find(out.begin(), out.end()) != out.end()) {
    throw Error(ErrorKind::shape, {.where = std::string(where),
                                   .what = fmt::format("axes {}", to_string(axes)),
                                   .expected = "each axis once",
                                   .got = "a repeated axis",
                                   .fix = "Remove the repetition; -1 names the last axis."});
  }
  return out;
}

Dims indices_at(const Shape& shape, int64_t position) {
  Dims indices = Dims::filled(shape.size(), 0);
  for (int axis = shape.size() - 1; axis >= 0; --axis) {
    indices[axis] = position % shape[axis];
    position /= shape[axis];
  }
  return indices;
}

std::string to_string(const Dims& dims) {
  return fmt::format("[{}]", fmt::join(dims.begin(), dims.end(), ", "));
}

std::ostream& operator<<(std::ostream& stream, const Dims& dims) {
  return stream << to_string(dims);
}

}  // namespace nitinol
