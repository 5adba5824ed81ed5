// More functions of one or two tensors, element by element: inverse and hyperbolic functions, parts
// of numbers, what replaces them.
//
// As the functions of unary.h and arithmetic.h: integers and booleans are computed in float32
// (numbers alone in float64), float16 and bfloat16 in float32 and rounded once; two operands
// broadcast and are promoted. Accuracy of each function: docs/accuracy.md.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/argument.h"

#include <optional>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

// ---- of one tensor

/// Cube root, of negative numbers, too.
[[nodiscard]] Tensor cbrt(const Tensor& x);
/// The angle whose sine is x, in [-pi/2, pi/2]; NaN outside [-1, 1].
[[nodiscard]] Tensor asin(const Tensor& x);
/// The angle whose cosine is x, in [0, pi]; NaN outside [-1, 1].
[[nodiscard]] Tensor acos(const Tensor& x);
/// The angle whose tangent is x, in [-pi/2, pi/2].
[[nodiscard]] Tensor atan(const Tensor& x);
/// Hyperbolic sine.
[[nodiscard]] Tensor sinh(const Tensor& x);
/// Hyperbolic cosine.
[[nodiscard]] Tensor cosh(const Tensor& x);
/// Inverse hyperbolic sine.
[[nodiscard]] Tensor asinh(const Tensor& x);
/// Inverse hyperbolic cosine; NaN below 1.
[[nodiscard]] Tensor acosh(const Tensor& x);
/// Inverse hyperbolic tangent; infinite at 1 and -1, NaN beyond.
[[nodiscard]] Tensor atanh(const Tensor& x);
/// 1 - erf(x), which does not cancel for large x.
[[nodiscard]] Tensor erfc(const Tensor& x);
/// The number whose erf is x: infinite at 1 and -1, NaN beyond.
[[nodiscard]] Tensor erfinv(const Tensor& x);
/// ln(|gamma(x)|): infinite at 0, -1, -2, ...
[[nodiscard]] Tensor lgamma(const Tensor& x);
/// The derivative of lgamma: infinite at 0, NaN at -1, -2, ...
[[nodiscard]] Tensor digamma(const Tensor& x);
/// ln(sigmoid(x)), without overflow.
[[nodiscard]] Tensor log_sigmoid(const Tensor& x);

/// x itself. Throws Error(dtype) for booleans.
[[nodiscard]] Tensor positive(const Tensor& x);
/// x, which is real: here and in the next two for code that is written for complex numbers, too.
[[nodiscard]] Tensor conj(const Tensor& x);
/// x.
[[nodiscard]] Tensor real(const Tensor& x);
/// Zeros, as x.
[[nodiscard]] Tensor imag(const Tensor& x);
/// x - trunc(x): the part after the point, with the sign of x.
[[nodiscard]] Tensor frac(const Tensor& x);
/// Degrees as radians.
[[nodiscard]] Tensor deg2rad(const Tensor& x);
/// Radians as degrees.
[[nodiscard]] Tensor rad2deg(const Tensor& x);
/// NaN replaced by `nan`, +inf by `posinf` and -inf by `neginf`: unless they are given, the largest
/// number of the dtype and the smallest. Gradients pass where nothing is replaced.
[[nodiscard]] Tensor nan_to_num(const Tensor& x, double nan = 0.0,
                                std::optional<double> posinf = {},
                                std::optional<double> neginf = {});

/// Boolean result: whether the sign is negative, also that of -0. A NaN counts as positive, as in
/// copysign(): which sign it has depends on the machine and on the code that made it.
[[nodiscard]] Tensor signbit(const Tensor& x);
/// Boolean result: whether x is +inf.
[[nodiscard]] Tensor isposinf(const Tensor& x);
/// Boolean result: whether x is -inf.
[[nodiscard]] Tensor isneginf(const Tensor& x);

// ---- of two

/// The angle of the point (b, a), in [-pi, pi]: that of the tangent a / b, in the quadrant that the
/// signs say, also those of zeros. Infinities give multiples of pi/4.
[[nodiscard]] Tensor atan2(const Argument& a, const Argument& b);
/// sqrt(a^2 + b^2), without overflow on the way; infinite if either is, even beside a NaN.
[[nodiscard]] Tensor hypot(const Argument& a, const Argument& b);
/// ln(e^a + e^b), without overflow. Where a negative a or b and the rest cancel, the error is that
/// of the rest.
[[nodiscard]] Tensor logaddexp(const Argument& a, const Argument& b);
/// The next number of the dtype after a towards b; b if they are equal.
[[nodiscard]] Tensor nextafter(const Argument& a, const Argument& b);
/// The larger one; a number if the other is NaN. Of equal ones the gradient goes to a.
[[nodiscard]] Tensor fmax(const Argument& a, const Argument& b);
/// The smaller one; a number if the other is NaN. Of equal ones the gradient goes to a.
[[nodiscard]] Tensor fmin(const Argument& a, const Argument& b);
/// x ln(y); 0 where x is 0, unless y is NaN.
[[nodiscard]] Tensor xlogy(const Argument& x, const Argument& y);
/// 0 for a negative x, 1 for a positive one, `value` at 0; NaN stays NaN.
[[nodiscard]] Tensor heaviside(const Argument& x, const Argument& value);
/// a + weight (b - a): a for the weight 0, b for 1.
[[nodiscard]] Tensor lerp(const Argument& a, const Argument& b, const Argument& weight);

/// Boolean: whether |a - b| <= atol + rtol * |b|, or a == b; with equal_nan also where both are
/// NaN.
[[nodiscard]] Tensor isclose(const Argument& a, const Argument& b, double rtol = 1e-5,
                             double atol = 1e-8, bool equal_nan = false);
/// 0-d boolean: whether isclose() holds everywhere.
[[nodiscard]] Tensor allclose(const Argument& a, const Argument& b, double rtol = 1e-5,
                              double atol = 1e-8, bool equal_nan = false);
/// 0-d boolean: whether shapes and all elements are equal; with equal_nan NaN is equal to NaN.
[[nodiscard]] Tensor array_equal(const Argument& a, const Argument& b, bool equal_nan = false);

[[nodiscard]] std::span<const Op> elementary_ops();

}  // namespace nitinol

#pragma GCC visibility pop
