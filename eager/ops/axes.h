// What functions over axes take: Axes, and whether reduced axes stay.
#pragma once

#include "core/integer.h"
#include "core/shape.h"

#include <concepts>
#include <initializer_list>

#pragma GCC visibility push(default)

namespace nitinol {

/// A list of axes, negative ones counting from the end; one axis; or none, which means all. Numbers
/// that are no integers are not axes: `max(x, 0.0)`, which meant maximum, and `sum(x, true)`, which
/// meant keepdims, do not compile.
class Axes {
 public:
  Axes() = default;
  // NOLINTBEGIN(google-explicit-constructor): written as numbers and in braces
  template <IntegerType T>
  Axes(T axis) : dims_({axis}) {}
  Axes(std::initializer_list<Integer> axes) : dims_(axes) {}
  Axes(const Dims& axes) : dims_(axes) {}
  // NOLINTEND(google-explicit-constructor)
  [[nodiscard]] const Dims& dims() const { return dims_; }

 private:
  Dims dims_;
};

/// Whether reduced axes stay, with size 1: `sum(x, -1, keepdims)`.
enum class KeepDims : bool { no, yes };
/// The same as KeepDims::yes.
inline constexpr KeepDims keepdims = KeepDims::yes;

}  // namespace nitinol

#pragma GCC visibility pop
