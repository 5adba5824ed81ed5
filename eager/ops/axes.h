// What functions over axes take: Axes, and whether reduced axes stay.
#pragma once

#include "core/shape.h"

#include <cstdint>
#include <initializer_list>

#pragma GCC visibility push(default)

namespace nitinol {

/// A list of axes, negative ones counting from the end; one axis; or none, which means all.
class Axes {
 public:
  Axes() = default;
  Axes(int64_t axis) : dims_({axis}) {}                       // NOLINT(google-explicit-constructor)
  Axes(std::initializer_list<int64_t> axes) : dims_(axes) {}  // NOLINT(google-explicit-constructor)
  Axes(const Dims& axes) : dims_(axes) {}                     // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Dims& dims() const { return dims_; }

 private:
  Dims dims_;
};

/// Whether reduced axes stay, with size 1: `sum(x, -1, keepdims)`.
enum class KeepDims : bool { no, yes };
inline constexpr KeepDims keepdims = KeepDims::yes;

}  // namespace nitinol

#pragma GCC visibility pop
