// Joining: tensors made of parts of others.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/argument.h"

#include <cstdint>
#include <initializer_list>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// The tensors one after another along an existing axis. They have one rank, equal sizes along the
/// other axes, and meet in their common dtype.
/// Throws Error(shape) if sizes differ, Error(value) for no tensors.
[[nodiscard]] Tensor concat(std::span<const Tensor> tensors, Integer axis = 0);
[[nodiscard]] Tensor concat(std::initializer_list<Tensor> tensors, Integer axis = 0);
/// The tensors, of one shape, one after another along a new axis at position `axis`.
[[nodiscard]] Tensor stack(std::span<const Tensor> tensors, Integer axis = 0);
[[nodiscard]] Tensor stack(std::initializer_list<Tensor> tensors, Integer axis = 0);

/// How many elements are added before and after an axis.
struct Padding {
  int64_t before = 0, after = 0;
};
/// x with `value` around it; one Padding per axis.
/// Throws Error(shape) unless there are as many as axes, Error(value) if one is negative.
[[nodiscard]] Tensor pad(const Tensor& x, std::span<const Padding> paddings,
                         const Argument& value = 0);
[[nodiscard]] Tensor pad(const Tensor& x, std::initializer_list<Padding> paddings,
                         const Argument& value = 0);

/// What stands around a padded tensor, of [a, b, c] on its right:
enum class PadMode : uint8_t {
  reflect,    ///< b, a, b, ...: mirrored at the last element; NumPy's "reflect"
  replicate,  ///< c, c, c, ...: the last element; NumPy's "edge"
  circular,   ///< a, b, c, ...: from the other end; NumPy's "wrap"
};
/// x with its own elements around it, axis by axis; one Padding, as long as you like, per axis.
/// Throws Error(shape) unless there are as many as axes, or for an axis without elements,
/// Error(value) if one is negative.
[[nodiscard]] Tensor pad(const Tensor& x, std::span<const Padding> paddings, PadMode mode);
[[nodiscard]] Tensor pad(const Tensor& x, std::initializer_list<Padding> paddings, PadMode mode);

/// `base` with `piece`, broadcast to `sizes`, stored in a window (per axis first index, size,
/// step). `piece` takes the dtype of `base`.
[[nodiscard]] Tensor place(const Tensor& base, const Tensor& piece, const Dims& starts,
                           const Shape& sizes, const Dims& steps);

[[nodiscard]] std::span<const Op> join_ops();

}  // namespace nitinol

#pragma GCC visibility pop
