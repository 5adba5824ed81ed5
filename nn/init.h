// Initial values of parameters.
#pragma once

#include "core/tensor.h"

#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// Uniform in [-bound, bound). Throws Error(value) unless the bound, or the deviation, is finite
/// and not negative.
[[nodiscard]] Tensor uniform(const Shape& shape, double bound, DType dtype = f32);
/// Normal with mean 0.
[[nodiscard]] Tensor normal(const Shape& shape, double deviation, DType dtype = f32);
/// Normal with mean 0, but for numbers beyond two deviations, which are not drawn.
[[nodiscard]] Tensor truncated_normal(const Shape& shape, double deviation, DType dtype = f32);

/// Weights of layers, [in, out] as Linear's or [out, in, window...] as Conv2d's, whose window
/// counts to both: variance 2 / (in + out), for tanh and sigmoid (X. Glorot, Y. Bengio, 2010),
/// times gain^2. Throws Error(shape) for fewer than two axes, Error(value) for a size of 0.
[[nodiscard]] Tensor xavier_uniform(const Shape& shape, DType dtype = f32, double gain = 1);
/// Normal; otherwise as xavier_uniform.
[[nodiscard]] Tensor xavier_normal(const Shape& shape, DType dtype = f32, double gain = 1);

struct KaimingOptions {
  double slope = 0;             ///< of leaky_relu: variance 2 / in / (1 + slope^2)
  bool counts_outputs = false;  ///< out in place of in, which keeps the size of gradients
};
/// Variance 2 / in, for relu (K. He et al., arXiv:1502.01852).
[[nodiscard]] Tensor kaiming_uniform(const Shape& shape, DType dtype = f32,
                                     const KaimingOptions& options = {});
[[nodiscard]] Tensor kaiming_normal(const Shape& shape, DType dtype = f32,
                                    const KaimingOptions& options = {});

/// A random matrix whose rows or columns, whichever are fewer, have the length `gain` and stand at
/// right angles to each other (A. Saxe et al., arXiv:1312.6120). Axes after the first count as one.
/// It is computed on the host, from random numbers that are read: a compiled function runs in
/// pieces around it. Throws Error(shape) for fewer than two axes, Error(value) for a size of 0.
[[nodiscard]] Tensor orthogonal(const Shape& shape, DType dtype = f32, double gain = 1);
/// Weights [out, in, window...] of a convolution that gives its channels as they came, as far as
/// there are as many; in each group. Throws Error(shape) for fewer than three axes, Error(value)
/// unless the groups divide `out`.
[[nodiscard]] Tensor dirac(const Shape& shape, DType dtype = f32, int64_t groups = 1);

}  // namespace nitinol::nn

#pragma GCC visibility pop
