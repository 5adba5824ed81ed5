// Initial values of parameters.
#pragma once

#include "core/tensor.h"

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// Uniform in [-bound, bound). Throws Error(value) unless the bound, or the deviation, is finite
/// and not negative.
[[nodiscard]] Tensor uniform(const Shape& shape, double bound, DType dtype = f32);
/// Normal with mean 0.
[[nodiscard]] Tensor normal(const Shape& shape, double deviation, DType dtype = f32);

/// Weights of layers, [in, out] as Linear's or [out, in, window...] as Conv2d's, whose window
/// counts to both: variance 2 / (in + out), for tanh and sigmoid (X. Glorot, Y. Bengio, 2010).
/// Throws Error(shape) for fewer than two axes, Error(value) for a size of 0.
[[nodiscard]] Tensor xavier_uniform(const Shape& shape, DType dtype = f32);
[[nodiscard]] Tensor xavier_normal(const Shape& shape, DType dtype = f32);
/// Variance 2 / in, for relu (K. He et al., arXiv:1502.01852).
[[nodiscard]] Tensor kaiming_uniform(const Shape& shape, DType dtype = f32);
[[nodiscard]] Tensor kaiming_normal(const Shape& shape, DType dtype = f32);

}  // namespace nitinol::nn

#pragma GCC visibility pop
