// Shapes and strides: short lists of int64 without allocation, and the rules of broadcasting.
#pragma once

#include "core/integer.h"

#include <array>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// The most axes that a tensor has.
inline constexpr int max_rank = 8;

/// At most max_rank int64 values: a shape, strides (in elements) or a list of axes.
/// Constructors and push_back throw Error(unsupported) beyond max_rank.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<Integer> values);
  explicit Dims(std::span<const int64_t> values);
  /// `size` copies of `value`.
  static Dims filled(int size, int64_t value);

  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  template <IntegerType I>
  int64_t& operator[](I i) {
    return values_[static_cast<std::size_t>(i)];
  }
  template <IntegerType I>
  int64_t operator[](I i) const {
    return values_[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] int64_t* begin() { return values_.data(); }
  [[nodiscard]] int64_t* end() { return values_.data() + size_; }
  [[nodiscard]] const int64_t* begin() const { return values_.data(); }
  [[nodiscard]] const int64_t* end() const { return values_.data() + size_; }
  [[nodiscard]] int64_t back() const { return (*this)[size_ - 1]; }
  // NOLINTNEXTLINE(google-explicit-constructor)
  operator std::span<const int64_t>() const { return {begin(), end()}; }

  void push_back(int64_t value);
  void insert(int position, int64_t value);
  void erase(int position);
  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.size_ != b.size_) return false;
    for (int i = 0; i < a.size_; ++i) {
      if (a[i] != b[i]) return false;
    }
    return true;
  }

 private:
  int8_t size_ = 0;
  std::array<int64_t, max_rank> values_ = {};
};

/// The size of each axis.
using Shape = Dims;
/// How far apart in memory neighbours along each axis lie, in elements.
using Strides = Dims;

/// A number for rows and one for columns: `2` for both, or `{2, 1}`.
class Pair {
 public:
  template <IntegerType T>
  Pair(T both) : Pair(both, both) {}  // NOLINT(google-explicit-constructor)
  template <IntegerType R, IntegerType C>
  Pair(R rows, C columns) : values_{Integer(rows), Integer(columns)} {}
  [[nodiscard]] int64_t rows() const { return values_[0]; }
  [[nodiscard]] int64_t columns() const { return values_[1]; }
  [[nodiscard]] Dims dims() const { return {rows(), columns()}; }
  [[nodiscard]] static int size() { return 2; }
  [[nodiscard]] const int64_t* begin() const { return values_.data(); }
  [[nodiscard]] const int64_t* end() const { return values_.data() + values_.size(); }

 private:
  std::array<int64_t, 2> values_;
};

/// Product of the sizes; 1 for a 0-d shape.
[[nodiscard]] int64_t element_count(const Shape& shape);
/// Row-major strides of a contiguous tensor of this shape.
[[nodiscard]] Strides strides_of(const Shape& shape);
/// True if these strides visit memory in row-major order without gaps (sizes 1 may have any
/// stride).
[[nodiscard]] bool is_contiguous(const Shape& shape, const Strides& strides);
/// The common shape of NumPy's broadcasting. `where` names the op in the Error(shape).
[[nodiscard]] Shape broadcast_shapes(std::string_view where, const Shape& a, const Shape& b);
/// Strides with which a tensor of `from` is read as `to`: 0 where it repeats. `from` must broadcast
/// to `to`.
[[nodiscard]] Strides broadcast_strides(const Shape& from, const Strides& strides, const Shape& to);
/// `axis` counted from the front. Throws Error(shape) unless -rank <= axis < rank.
[[nodiscard]] int normalize_axis(std::string_view where, int64_t axis, int rank);
/// Sorted, distinct, counted from the front; all axes if `axes` is empty. Throws Error(shape) on
/// repeats.
[[nodiscard]] Dims normalize_axes(std::string_view where, const Dims& axes, int rank);
/// The index along each axis of the element that is number `position` in row-major order.
[[nodiscard]] Dims indices_at(const Shape& shape, int64_t position);
/// "[4, 3]".
[[nodiscard]] std::string to_string(const Dims& dims);
/// Writes to_string(dims).
std::ostream& operator<<(std::ostream& stream, const Dims& dims);

}  // namespace nitinol

#pragma GCC visibility pop
