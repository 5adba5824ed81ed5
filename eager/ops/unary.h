// Functions of one tensor, applied to each element.
//
// The result has the operand's shape and dtype unless said otherwise. Functions of floating dtypes
// compute integers and booleans in float32 (numbers alone in float64). float16 and bfloat16 compute
// in float32 and round once. Accuracy of each function: docs/accuracy.md.
#pragma once

#include "core/integer.h"
#include "core/op.h"
#include "core/tensor.h"

#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

// ---- any number

/// |x|; the smallest integer of a dtype stays itself, and so do booleans.
[[nodiscard]] Tensor abs(const Tensor& x);
/// -x; integers wrap.
[[nodiscard]] Tensor neg(const Tensor& x);
/// -1, 0 or 1; NaN stays NaN.
[[nodiscard]] Tensor sign(const Tensor& x);
/// x * x.
[[nodiscard]] Tensor square(const Tensor& x);
/// Largest integral value <= x; integers and booleans stay as they are, here and in the next three.
[[nodiscard]] Tensor floor(const Tensor& x);
/// Smallest integral value >= x.
[[nodiscard]] Tensor ceil(const Tensor& x);
/// To the nearest integral value, ties to even.
[[nodiscard]] Tensor round(const Tensor& x);
/// Towards zero.
[[nodiscard]] Tensor trunc(const Tensor& x);
/// max(x, 0); NaN stays NaN.
[[nodiscard]] Tensor relu(const Tensor& x);

// ---- floating dtypes

/// Square root, correctly rounded.
[[nodiscard]] Tensor sqrt(const Tensor& x);
/// 1 / sqrt(x), rounded twice.
[[nodiscard]] Tensor rsqrt(const Tensor& x);
/// 1 / x.
[[nodiscard]] Tensor reciprocal(const Tensor& x);
/// e^x.
[[nodiscard]] Tensor exp(const Tensor& x);
/// 2^x.
[[nodiscard]] Tensor exp2(const Tensor& x);
/// e^x - 1, accurate near 0.
[[nodiscard]] Tensor expm1(const Tensor& x);
/// Natural logarithm.
[[nodiscard]] Tensor log(const Tensor& x);
/// ln(1 + x), accurate near 0.
[[nodiscard]] Tensor log1p(const Tensor& x);
/// Logarithm to base 2.
[[nodiscard]] Tensor log2(const Tensor& x);
/// Logarithm to base 10.
[[nodiscard]] Tensor log10(const Tensor& x);
/// Sine of radians, at any magnitude.
[[nodiscard]] Tensor sin(const Tensor& x);
/// Cosine of radians, at any magnitude.
[[nodiscard]] Tensor cos(const Tensor& x);
/// Tangent of radians, at any magnitude.
[[nodiscard]] Tensor tan(const Tensor& x);
/// Hyperbolic tangent.
[[nodiscard]] Tensor tanh(const Tensor& x);
/// The error function, 2/sqrt(pi) times the integral of e^(-t^2) from 0 to x.
[[nodiscard]] Tensor erf(const Tensor& x);
/// Logistic function, 1 / (1 + e^-x).
[[nodiscard]] Tensor sigmoid(const Tensor& x);
/// x Phi(x) = x (1 + erf(x / sqrt 2)) / 2 (Hendrycks and Gimpel, arXiv:1606.08415, section 2).
[[nodiscard]] Tensor gelu(const Tensor& x);
/// x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2 (the same paper's approximation).
[[nodiscard]] Tensor gelu_tanh(const Tensor& x);
/// x sigmoid(x).
[[nodiscard]] Tensor silu(const Tensor& x);
/// ln(1 + e^x), without overflow.
[[nodiscard]] Tensor softplus(const Tensor& x);

// ---- activations; at a kink the gradient is that of PyTorch: the left side's, unless said

/// x where it is positive, else slope x (A. Maas, A. Hannun, A. Ng, ICML 2013).
[[nodiscard]] Tensor leaky_relu(const Tensor& x, double slope = 0.01);
/// leaky_relu with a slope that is learned: one number, or one for each feature along axis 1
/// (K. He et al., arXiv:1502.01852). Throws Error(shape) for another number of slopes.
[[nodiscard]] Tensor prelu(const Tensor& x, const Tensor& slope);
/// x where it is positive, else alpha (e^x - 1) (D.-A. Clevert et al., arXiv:1511.07289).
[[nodiscard]] Tensor elu(const Tensor& x, double alpha = 1);
/// elu with the alpha and the factor that keep mean 0 and variance 1 (G. Klambauer et al.,
/// arXiv:1706.02515).
[[nodiscard]] Tensor selu(const Tensor& x);
/// x where it is positive, else alpha (e^(x / alpha) - 1), whose slope is continuous (J. Barron,
/// arXiv:1704.07483).
[[nodiscard]] Tensor celu(const Tensor& x, double alpha = 1);
/// x tanh(softplus(x)) (D. Misra, arXiv:1908.08681).
[[nodiscard]] Tensor mish(const Tensor& x);
/// (x + 3) / 6 limited to [0, 1]; no gradient at -3 and 3.
[[nodiscard]] Tensor hardsigmoid(const Tensor& x);
/// x hardsigmoid(x) (A. Howard et al., arXiv:1905.02244); no gradient at -3, one at 3.
[[nodiscard]] Tensor hardswish(const Tensor& x);
/// x limited to [low, high]; no gradient at either. Throws Error(value) unless low <= high.
[[nodiscard]] Tensor hardtanh(const Tensor& x, double low = -1, double high = 1);
/// x limited to [0, 6]; no gradient at either.
[[nodiscard]] Tensor relu6(const Tensor& x);
/// x where |x| > bound, else 0.
[[nodiscard]] Tensor hardshrink(const Tensor& x, double bound = 0.5);
/// x brought nearer to 0 by `bound`; 0 where |x| <= bound. Throws Error(value) for one below 0.
[[nodiscard]] Tensor softshrink(const Tensor& x, double bound = 0.5);
/// x - tanh(x).
[[nodiscard]] Tensor tanhshrink(const Tensor& x);
/// x / (1 + |x|).
[[nodiscard]] Tensor softsign(const Tensor& x);
/// a sigmoid(b), a and b being the halves of x along the axis (Y. Dauphin et al.,
/// arXiv:1612.08083). Throws Error(shape) if it has an odd size.
[[nodiscard]] Tensor glu(const Tensor& x, Integer axis = -1);

// ---- conditions and bits

/// Boolean result: whether x is NaN; no integer is.
[[nodiscard]] Tensor isnan(const Tensor& x);
/// Boolean result: whether x is +inf or -inf; no integer is.
[[nodiscard]] Tensor isinf(const Tensor& x);
/// Boolean result: whether x is neither infinite nor NaN, as all integers are.
[[nodiscard]] Tensor isfinite(const Tensor& x);
/// Boolean result: x == 0. Any dtype.
[[nodiscard]] Tensor logical_not(const Tensor& x);
/// All bits flipped; integers and booleans.
[[nodiscard]] Tensor bitwise_not(const Tensor& x);

[[nodiscard]] Tensor operator-(const Tensor& x);
/// logical_not.
[[nodiscard]] Tensor operator!(const Tensor& x);
/// bitwise_not.
[[nodiscard]] Tensor operator~(const Tensor& x);

[[nodiscard]] std::span<const Op> unary_ops();
[[nodiscard]] std::span<const Op> activations_ops();

}  // namespace nitinol

#pragma GCC visibility pop
