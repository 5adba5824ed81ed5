// Inference shared by the ops: specs of results, calls, and errors for operands that do not fit.
#pragma once

#include "core/error.h"
#include "core/library.h"
#include "core/op.h"

#include <string>
#include <string_view>

namespace nitinol {

/// elementwise: inputs of one dtype that the op accepts broadcast; the result is boolean if the op
/// is a predicate, weak if all inputs are.
[[nodiscard]] Spec infer_elementwise(const Op& op, Inputs inputs, const Attrs& attrs);

/// create: attrs are the result's shape and dtype; inputs are 0-d numbers that the op accepts.
[[nodiscard]] Spec infer_create(const Op& op, Inputs inputs, const Attrs& attrs);

/// Throws Error(dtype) unless `op` accepts the tensor's dtype.
void check_dtype(const Op& op, const Tensor& x);
/// The same for a function that is no op.
void check_dtype(std::string_view where, DTypes accepts, const Tensor& x);
/// Throws Error(device) unless all inputs are on one device, which it returns.
Device common_device(const Op& op, Inputs inputs);
/// "f32, f64".
[[nodiscard]] std::string to_string(DTypes dtypes);

/// Throws Error(shape) if a size is negative, or if there are more elements than addresses.
void check_shape(std::string_view where, const Shape& shape);

/// Attributes made by the public functions are right; graphs parsed from text may say anything.
/// Throws Error(shape) unless the sizes are those of a tensor.
void check_sizes(const Op& op, const Shape& sizes);
/// Throws Error(shape) unless 0 <= axis < rank.
void check_axis(const Op& op, int64_t axis, int rank);
/// Throws Error(shape) unless `axes` are the numbers from 0 to rank - 1 in some order.
void check_permutation(const Op& op, const Dims& axes, int rank);
/// Throws Error(shape) unless the window, a range of indices per axis, lies inside `shape`.
void check_window(const Op& op, const Shape& shape, const Dims& starts, const Shape& sizes,
                  const Dims& steps);
/// Throws Error(value) for a step of 0.
void check_step(const Op& op, int64_t step);

/// The call of `kind` on the operands exactly as they lie, with a row-major result.
[[nodiscard]] LibraryCall library_call(LibraryCall::Kind kind, Inputs inputs, const Spec& result);
/// The same along an axis, the first of `attrs`.
[[nodiscard]] LibraryCall call_along(LibraryCall::Kind kind, Inputs inputs, const Attrs& attrs,
                                     const Spec& result);

/// Throws Error(value) without a fix: what there is to do is said by `expected`.
[[noreturn]] void throw_value(std::string_view where, std::string_view what,
                              std::string_view expected, std::string got);

/// attrs[i] as a T.
template <class T>
[[nodiscard]] const T& attr(const Attrs& attrs, std::size_t i) {
  return std::get<T>(attrs[i]);
}

}  // namespace nitinol
