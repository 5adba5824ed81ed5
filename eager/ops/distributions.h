// Random tensors of other distributions, made of rand() and randn(): the same numbers eagerly and
// compiled.
//
// Each call takes counters from the generator as those do (eager/ops/random.h); results lie on its
// device.
#pragma once

#include "core/generator.h"
#include "core/tensor.h"

#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

/// Uniform in [low, high). 16-bit dtypes round float32, also to `high`.
/// Throws Error(value) unless low < high and both are finite, Error(dtype) for integers.
[[nodiscard]] Tensor uniform(const Shape& shape, double low = 0, double high = 1, DType dtype = f32,
                             const Generator& generator = default_generator());
/// Normal. Throws Error(value) for a negative deviation, Error(dtype) for integers.
[[nodiscard]] Tensor normal(const Shape& shape, double mean = 0, double deviation = 1,
                            DType dtype = f32, const Generator& generator = default_generator());
/// Exponential: ln(1 / (1 - u)) / rate for u uniform in [0, 1).
/// Throws Error(value) unless rate > 0, Error(dtype) for integers.
[[nodiscard]] Tensor exponential(const Shape& shape, double rate = 1, DType dtype = f32,
                                 const Generator& generator = default_generator());
/// Boolean of the shape of `probabilities`: true with each one's probability.
[[nodiscard]] Tensor bernoulli(const Tensor& probabilities);
[[nodiscard]] Tensor bernoulli(const Tensor& probabilities, const Generator& generator);

/// The int64 numbers 0 to n - 1 in random order. Throws Error(value) for a negative n.
[[nodiscard]] Tensor permutation(Integer n, const Generator& generator = default_generator());
/// x with its parts along an axis in random order.
[[nodiscard]] Tensor shuffle(const Tensor& x, Integer axis = 0);
[[nodiscard]] Tensor shuffle(const Tensor& x, Integer axis, const Generator& generator);

/// int64 indices of the last axis, `count` of them in its place, each with a probability in
/// proportion to the number there; PyTorch's multinomial. Without `replaces` no index comes twice,
/// and those of probability 0 come last.
/// Throws Error(shape) for no axis or an empty one, Error(value) for a negative count, or for more
/// indices without replacement than there are.
[[nodiscard]] Tensor categorical(const Tensor& probabilities, Integer count = 1,
                                 bool replaces = true);
[[nodiscard]] Tensor categorical(const Tensor& probabilities, Integer count, bool replaces,
                                 const Generator& generator);

}  // namespace nitinol

#pragma GCC visibility pop
