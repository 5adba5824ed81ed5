// Arithmetic of two or three tensors, element by element.
//
// Operands broadcast. They meet in the dtype that promotion gives (core/dtype.h); a number beside a
// tensor takes the tensor's dtype, but a floating number beside integers gives float32. Integers
// wrap; functions of floating dtypes compute them in float32 (numbers alone in float64). Every
// function throws Error(shape) if the shapes do not broadcast, Error(dtype) if the op does not take
// the common dtype, Error(device) if the operands are on different devices.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/argument.h"

#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// Sum; of booleans logical_or.
[[nodiscard]] Tensor add(const Argument& a, const Argument& b);
/// Difference.
[[nodiscard]] Tensor sub(const Argument& a, const Argument& b);
/// Product; of booleans logical_and.
[[nodiscard]] Tensor mul(const Argument& a, const Argument& b);
/// Quotient. Integers are divided as float32 (numbers alone as float64).
[[nodiscard]] Tensor div(const Argument& a, const Argument& b);
/// Quotient rounded towards minus infinity, in the operands' dtype.
/// Throws Error(value) if an integer divisor is 0.
[[nodiscard]] Tensor floor_divide(const Argument& a, const Argument& b);
/// a - floor_divide(a, b) * b: has the divisor's sign.
/// Throws Error(value) if an integer divisor is 0.
[[nodiscard]] Tensor remainder(const Argument& a, const Argument& b);
/// a - trunc(a / b) * b, exact: has the dividend's sign, as C's fmod.
/// Throws Error(value) if an integer divisor is 0.
[[nodiscard]] Tensor fmod(const Argument& a, const Argument& b);
/// The same integers or bools. Throws Error(value) if one is 0, or false: also from a compiled
/// function, in which the check stays even if nothing is done with the result.
Tensor check_nonzero(const Tensor& x);
/// a to the power of b. Of integers it wraps, and throws Error(value) if an exponent is negative:
/// the result would be no integer.
[[nodiscard]] Tensor pow(const Argument& a, const Argument& b);
/// The larger one; NaN if either is; -0 counts as less than +0, false as less than true.
[[nodiscard]] Tensor maximum(const Argument& a, const Argument& b);
/// The smaller one; NaN if either is; -0 counts as less than +0, false as less than true.
[[nodiscard]] Tensor minimum(const Argument& a, const Argument& b);
/// |a| with the sign of b, in floating dtypes. A NaN counts as positive.
[[nodiscard]] Tensor copysign(const Argument& a, const Argument& b);
/// x limited to [low, high], as minimum(maximum(x, low), high). At a bound the gradient passes to
/// x, and none to the bound.
[[nodiscard]] Tensor clamp(const Argument& x, const Argument& low, const Argument& high);
/// a * b + c rounded once, in floating dtypes.
[[nodiscard]] Tensor fma(const Argument& a, const Argument& b, const Argument& c);

[[nodiscard]] Tensor operator+(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator-(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator*(const Argument& a, const Argument& b);
[[nodiscard]] Tensor operator/(const Argument& a, const Argument& b);
/// remainder.
[[nodiscard]] Tensor operator%(const Argument& a, const Argument& b);

[[nodiscard]] std::span<const Op> arithmetic_ops();

}  // namespace nitinol

#pragma GCC visibility pop
