// x.at({...}): basic indexing as in NumPy, to read a part or to make a value with a part replaced.
//
//     x.at({0, Range{1, 4}})          row 0, columns 1 to 3
//     x.at({ellipsis, -1})            the last element along the last axis
//     x.at({all_of_axis, new_axis})   an axis of size 1 inserted
//     y = x.at({0}).set(1.0f)         y is x with row 0 replaced; x stays as it is
//
// Indices whose number is known when the program runs come as a std::span<const Index>.
#pragma once

#include "core/tensor.h"
#include "eager/argument.h"
#include "eager/ops/view.h"

#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

struct Ellipsis {};
struct NewAxis {};
/// Stands for as many whole axes as are left.
inline constexpr Ellipsis ellipsis;
/// Inserts an axis of size 1.
inline constexpr NewAxis new_axis;
/// The whole axis.
inline constexpr Range all_of_axis;

/// One entry of x.at({...}).
struct Index {
  enum class Kind : uint8_t { integer, range, rest, insertion };
  // NOLINTBEGIN(google-explicit-constructor): written in braces
  template <IntegerType T>
  Index(T i) : kind(Kind::integer), integer(Integer(i)) {}
  Index(Range r) : kind(Kind::range), range(r) {}
  Index(Ellipsis) : kind(Kind::rest) {}
  Index(NewAxis) : kind(Kind::insertion) {}
  // NOLINTEND(google-explicit-constructor)
  Kind kind;
  int64_t integer = 0;
  Range range;
};

/// A part of a tensor.
class At {
 public:
  At(Tensor base, std::span<const Index> indices);
  /// The part, a view.
  operator Tensor() const { return get(); }  // NOLINT(google-explicit-constructor): reads like one
  [[nodiscard]] Tensor get() const;

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] DType dtype() const { return base_.dtype(); }
  [[nodiscard]] Device device() const { return base_.device(); }
  [[nodiscard]] int rank() const { return shape_.size(); }
  /// Number of elements.
  [[nodiscard]] int64_t size() const { return element_count(shape_); }
  /// Of the part, as Tensor's functions of these names.
  template <class T>
  [[nodiscard]] T item(std::source_location place = std::source_location::current()) const {
    return get().item<T>(place);
  }
  template <class T>
  [[nodiscard]] std::vector<T> to_vector(
      std::source_location place = std::source_location::current()) const {
    return get().to_vector<T>(place);
  }
  [[nodiscard]] Tensor to(DType dtype) const { return get().to(dtype); }
  Tensor operator[](Integer i) const { return get()[i]; }
  [[nodiscard]] At at(std::initializer_list<Index> indices) const { return get().at(indices); }

  /// The whole tensor with the part replaced by `value`, which broadcasts and takes its dtype.
  [[nodiscard]] Tensor set(const Argument& value) const;

 private:
  Tensor base_;
  Dims starts_, steps_;
  Shape sizes_;  ///< of the window, per axis of base_
  Shape shape_;  ///< of the part: without integer axes, with new ones
};

}  // namespace nitinol

#pragma GCC visibility pop
