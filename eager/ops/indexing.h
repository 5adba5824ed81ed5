// x.at({...}): indexing as in NumPy, to read a part or to make a value with a part replaced.
//
//     x.at({0, Range{1, 4}})          row 0, columns 1 to 3
//     x.at({ellipsis, -1})            the last element along the last axis
//     x.at({all_of_axis, new_axis})   an axis of size 1 inserted
//     x.at({places, Range{1, 4}})     the rows that a tensor of integers names, columns 1 to 3
//     x.at({x[0] > 0})                the rows where a boolean tensor is true
//     y = x.at({0}).set(1.0f)         y is x with row 0 replaced; x stays as it is
//     y = x.at({places}).add(1.0f)    places that occur twice count twice
//
// Several tensors of integers broadcast and choose together; the axes of what they choose come
// where the first of them stands, or first if something else stands between them. A mask of several
// axes stands for all of them, one of none chooses all or nothing of a new axis of size 1. How many
// elements it chooses depends on data: see eager/ops/masks.h.
//
// Indices whose number is known when the program runs come as a std::span<const Index>.
#pragma once

#include "core/tensor.h"
#include "eager/argument.h"
#include "eager/ops/scatter.h"
#include "eager/ops/view.h"

#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// The type of `ellipsis`.
struct Ellipsis {};
/// The type of `new_axis`.
struct NewAxis {};
/// Stands for as many whole axes as are left.
inline constexpr Ellipsis ellipsis;
/// Inserts an axis of size 1.
inline constexpr NewAxis new_axis;
/// The whole axis.
inline constexpr Range all_of_axis;

/// One entry of x.at({...}).
struct Index {
  enum class Kind : uint8_t { integer, range, rest, insertion, tensor };
  // NOLINTBEGIN(google-explicit-constructor): written in braces
  template <IntegerType T>
  Index(T i) : kind(Kind::integer), integer(Integer(i)) {}
  Index(Range r) : kind(Kind::range), range(r) {}
  Index(Ellipsis) : kind(Kind::rest) {}
  Index(NewAxis) : kind(Kind::insertion) {}
  /// Integers, or a mask. It must live until at() has returned.
  Index(const Tensor& t) : kind(Kind::tensor), tensor(&t) {}
  // NOLINTEND(google-explicit-constructor)
  Kind kind;
  int64_t integer = 0;
  Range range;
  const Tensor* tensor = nullptr;
};

/// A part of a tensor.
class At {
 public:
  At(Tensor base, std::span<const Index> indices);
  /// At(x, indices).get(); where no tensor is among these and nothing watches, the view is made at
  /// once.
  [[nodiscard]] static Tensor part_of(const Tensor& x, std::span<const Index> indices);
  /// The part: a view, unless tensors choose.
  operator Tensor() const { return get(); }  // NOLINT(google-explicit-constructor): reads like one
  [[nodiscard]] Tensor get() const;

  [[nodiscard]] Shape shape() const { return chosen_.empty() ? shape_ : get().shape(); }
  [[nodiscard]] DType dtype() const { return base_.dtype(); }
  [[nodiscard]] Device device() const { return base_.device(); }
  [[nodiscard]] int rank() const { return shape().size(); }
  /// Number of elements.
  [[nodiscard]] int64_t size() const { return element_count(shape()); }
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
  /// The same with the value added to the part, multiplied by it, or the larger or smaller one.
  /// Where a tensor names a place more than once, all values arrive, in their order.
  [[nodiscard]] Tensor add(const Argument& value) const { return join(value, Arrival::add); }
  [[nodiscard]] Tensor multiply(const Argument& value) const {
    return join(value, Arrival::multiply);
  }
  [[nodiscard]] Tensor maximum(const Argument& value) const {
    return join(value, Arrival::maximum);
  }
  [[nodiscard]] Tensor minimum(const Argument& value) const {
    return join(value, Arrival::minimum);
  }

 private:
  /// A tensor that chooses among the elements along axes of the part.
  struct Choice {
    Tensor tensor;
    int axis;  ///< the first one, of shape_
  };

  [[nodiscard]] Tensor join(const Argument& value, Arrival arrival) const;
  /// The part before tensors choose.
  [[nodiscard]] Tensor window_part() const;
  /// The whole tensor with that replaced.
  [[nodiscard]] Tensor with_window(const Tensor& part) const;
  /// Says where the axes of what tensors choose go.
  void place_choice(std::span<const Index> indices);

  Tensor base_;
  Dims starts_, steps_;
  Shape sizes_;  ///< of the window, per axis of base_
  Shape shape_;  ///< of the part before tensors choose: without integer axes, with new ones
  std::vector<Choice> chosen_;
  int choice_axis_ = 0;  ///< of the result: where the axes of what tensors choose begin
};

}  // namespace nitinol

#pragma GCC visibility pop
