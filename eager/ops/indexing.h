// x.at({...}): basic indexing as in NumPy, to read a part or to make a value with a part replaced.
//
//     x.at({0, Range{1, 4}})          row 0, columns 1 to 3
//     x.at({ellipsis, -1})            the last element along the last axis
//     x.at({all_of_axis, new_axis})   an axis of size 1 inserted
//     y = x.at({0}).set(1.0f)         y is x with row 0 replaced; x stays as it is
#pragma once

#include "core/tensor.h"
#include "eager/argument.h"
#include "eager/ops/view.h"

#include <cstdint>
#include <initializer_list>

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
  Index(int64_t i) : kind(Kind::integer), integer(i) {}  // NOLINT: written in braces
  Index(int i) : Index(static_cast<int64_t>(i)) {}       // NOLINT
  Index(Range r) : kind(Kind::range), range(r) {}        // NOLINT
  Index(Ellipsis) : kind(Kind::rest) {}                  // NOLINT
  Index(NewAxis) : kind(Kind::insertion) {}              // NOLINT
  Kind kind;
  int64_t integer = 0;
  Range range;
};

/// A part of a tensor.
class At {
 public:
  At(Tensor base, std::initializer_list<Index> indices);
  /// The part, a view.
  operator Tensor() const { return get(); }  // NOLINT(google-explicit-constructor): reads like one
  [[nodiscard]] Tensor get() const;
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
