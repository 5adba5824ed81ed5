// Comparisons, conditions and bits of two tensors, element by element; selection.
//
// Operands broadcast and are promoted as those of add, with the same errors.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/argument.h"

#include <concepts>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

// ---- boolean results; a NaN is unequal to everything and neither less nor greater. Integers
// compare exactly with numbers that their dtype does not hold: uint8 tensors are less than 300. (An
// int64 meets a floating number in float64.)

/// Whether a == b.
[[nodiscard]] Tensor eq(const Argument& a, const Argument& b);
/// Whether a != b.
[[nodiscard]] Tensor ne(const Argument& a, const Argument& b);
/// Whether a < b.
[[nodiscard]] Tensor lt(const Argument& a, const Argument& b);
/// Whether a <= b.
[[nodiscard]] Tensor le(const Argument& a, const Argument& b);
/// Whether a > b.
[[nodiscard]] Tensor gt(const Argument& a, const Argument& b);
/// Whether a >= b.
[[nodiscard]] Tensor ge(const Argument& a, const Argument& b);

/// Whether both are true; operands of other dtypes count as x != 0.
[[nodiscard]] Tensor logical_and(const Argument& a, const Argument& b);
/// Whether either is true; operands of other dtypes count as x != 0.
[[nodiscard]] Tensor logical_or(const Argument& a, const Argument& b);
/// Whether one is true and not both; operands of other dtypes count as x != 0.
[[nodiscard]] Tensor logical_xor(const Argument& a, const Argument& b);

// ---- integers and booleans

/// Bits of both; integers and booleans.
[[nodiscard]] Tensor bitwise_and(const Argument& a, const Argument& b);
/// Bits of either; integers and booleans.
[[nodiscard]] Tensor bitwise_or(const Argument& a, const Argument& b);
/// Bits of one but not both; integers and booleans.
[[nodiscard]] Tensor bitwise_xor(const Argument& a, const Argument& b);
/// a shifted left by b bits; integers. 0 if b is negative or no less than the number of bits.
[[nodiscard]] Tensor left_shift(const Argument& a, const Argument& b);
/// a shifted right by b bits; integers, which keep their sign. If b is negative or no less than the
/// number of bits, -1 for a negative a, else 0.
[[nodiscard]] Tensor right_shift(const Argument& a, const Argument& b);

/// condition ? a : b. The condition counts as x != 0; a and b meet in their common dtype.
[[nodiscard]] Tensor where(const Argument& condition, const Argument& a, const Argument& b);

[[nodiscard]] Tensor operator==(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator!=(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator<(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator<=(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator>(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator>=(const Argument& a, const Argument& b);
/// What stands for a tensor in formulas.
template <class T>
concept TensorLike = std::same_as<T, Tensor> || std::same_as<T, Variable> || std::same_as<T, At> ||
    std::same_as<T, Scalar>;
/// Two of them, or one that is no condition of C++ beside a number.
template <class A, class B>
concept LogicalOperands = (TensorLike<A> && TensorLike<B>) ||
                          (TensorLike<A> && !std::constructible_from<bool, A> && Arithmetic<B>) ||
                          (Arithmetic<A> && TensorLike<B> && !std::constructible_from<bool, B>);
/// logical_and; both sides are computed. Beside a bool of the host, as in `is_ready && loss < 1`,
/// C++'s own operator stays: it looks at the tensor's one element.
template <class A, class B>
requires LogicalOperands<A, B>
[[nodiscard]] Tensor operator&&(const A& a, const B& b) {
  return logical_and(a, b);
}
/// logical_or, likewise.
template <class A, class B>
requires LogicalOperands<A, B>
[[nodiscard]] Tensor operator||(const A& a, const B& b) {
  return logical_or(a, b);
}
[[nodiscard]] Tensor operator&(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator|(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator^(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator<<(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator>>(const Argument& a, const Argument& b);

[[nodiscard]] std::span<const Op> compare_ops();

}  // namespace nitinol

#pragma GCC visibility pop
