// What each op should give, computed in long double or exact integers: the oracle of the op tests.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <functional>
#include <span>
#include <vector>

namespace nitinol::test {

/// The elements of a tensor as numbers that hold any of them exactly.
struct Elements {
  DType dtype = f32;
  Shape shape;
  std::vector<long double> values;

  /// Of the element at `indices` in `values`.
  [[nodiscard]] std::size_t place(const Dims& indices) const;
  [[nodiscard]] long double at(const Dims& indices) const { return values[place(indices)]; }
};

[[nodiscard]] Elements elements_of(const Tensor& tensor);

/// Calls f with each index of the shape, in row-major order.
void for_each_index(const Shape& shape, const std::function<void(const Dims&)>& f);

/// The result of `op`, of the result's shape and dtype; rounding is left to the comparison.
/// Throws std::runtime_error if the op has no reference.
[[nodiscard]] Elements reference(const Op& op, std::span<const Tensor> inputs, const Attrs& attrs,
                                 const Spec& result);

/// `value` as an integer dtype holds it.
[[nodiscard]] long double wrapped(DType dtype, long double value);

}  // namespace nitinol::test
