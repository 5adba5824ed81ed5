// Argument: what a binary op takes on either side: a Tensor, a part of one, a Variable or a number.
#pragma once

#include "core/scalar_value.h"
#include "core/tensor.h"
#include "core/variable.h"

#pragma GCC visibility push(default)

namespace nitinol {

class At;

/// Lives for one call. A number is weak (core/scalar_value.h).
class Argument {
 public:
  // NOLINTBEGIN(google-explicit-constructor): whatever a formula may contain is an operand
  Argument(const Tensor& tensor) : tensor_(&tensor) {}
  Argument(const Variable& variable) : owned_(variable.get()), tensor_(&owned_) {}
  Argument(const At& part);  // eager/ops/indexing.cpp
  Argument(const Scalar& scalar) : scalar_(scalar) {
    if (scalar_.traced().is_defined()) tensor_ = &scalar_.traced();
  }
  template <Arithmetic T>
  Argument(T value) : scalar_(value) {}
  // NOLINTEND(google-explicit-constructor)
  Argument(const Argument&) = delete;
  Argument& operator=(const Argument&) = delete;

  /// The tensor, or null for a host number.
  [[nodiscard]] const Tensor* tensor() const { return tensor_; }
  /// That number.
  [[nodiscard]] const Scalar& scalar() const { return scalar_; }

 private:
  Tensor owned_;
  Scalar scalar_;
  const Tensor* tensor_ = nullptr;
};

}  // namespace nitinol

#pragma GCC visibility pop
