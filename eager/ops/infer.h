// Inference shared by the ops: specs of results, and the errors for operands that do not fit.
#pragma once

#include "core/error.h"
#include "core/op.h"

#include <string>

namespace nitinol {

/// elementwise: inputs of one dtype that the op accepts broadcast; the result is boolean if the op
/// is a predicate, weak if all inputs are.
[[nodiscard]] Spec infer_elementwise(const Op& op, Inputs inputs, const Attrs& attrs);

/// create: attrs are the result's shape and dtype; inputs are 0-d numbers that the op accepts.
[[nodiscard]] Spec infer_create(const Op& op, Inputs inputs, const Attrs& attrs);

/// Throws Error(dtype) unless `op` accepts the tensor's dtype.
void check_dtype(const Op& op, const Tensor& x);
/// Throws Error(device) unless all inputs are on one device, which it returns.
Device common_device(const Op& op, Inputs inputs);
/// "f32, f64".
[[nodiscard]] std::string to_string(DTypes dtypes);

/// attrs[i] as a T.
template <class T>
[[nodiscard]] const T& attr(const Attrs& attrs, std::size_t i) {
  return std::get<T>(attrs[i]);
}

}  // namespace nitinol
