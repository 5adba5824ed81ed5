// Random tensors of other distributions, made of rand() and randn(): the same numbers eagerly and
// compiled.
//
// Each call takes counters from the generator as those do (eager/ops/random.h); results lie on its
// device.
#pragma once

#include "core/generator.h"
#include "core/tensor.h"
#include "eager/argument.h"

#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)

namespace nitinol {

/// Uniform in [low, high). 16-bit dtypes round float32, also to `high`.
/// Throws Error(value) unless low < high and both are finite, Error(dtype) for integers.
[[nodiscard]] Tensor uniform(const Shape& shape, double low = 0, double high = 1, DType dtype = f32,
                             const Generator& generator = default_generator());
/// Normal. Throws Error(value) for a negative deviation, Error(dtype) for integers.
[[nodiscard]] Tensor normal(const Shape& shape, double mean = 0, double deviation = 1,
                            DType dtype = f32, const Generator& generator = default_generator());
/// Normal, but for numbers outside of [low, high], which are not drawn.
/// Throws Error(value) unless low < high and deviation > 0, or if next to nothing of the normal
/// distribution lies between them; Error(dtype) for integers.
[[nodiscard]] Tensor truncated_normal(const Shape& shape, double low = -2, double high = 2,
                                      double mean = 0, double deviation = 1, DType dtype = f32,
                                      const Generator& generator = default_generator());
/// Exponential: ln(1 / (1 - u)) / rate for u uniform in [0, 1).
/// Throws Error(value) unless rate > 0, Error(dtype) for integers.
[[nodiscard]] Tensor exponential(const Shape& shape, double rate = 1, DType dtype = f32,
                                 const Generator& generator = default_generator());
/// Gamma, with a density in proportion to x^(concentration - 1) e^(-rate x): the first of 8 tries
/// that is accepted (Marsaglia and Tsang, 2000). None is with a probability below 1e-10; then a
/// number near the middle is drawn.
/// Throws Error(value) unless concentration > 0 and rate > 0, Error(dtype) for integers.
[[nodiscard]] Tensor gamma(const Shape& shape, double concentration, double rate = 1,
                           DType dtype = f32, const Generator& generator = default_generator());
/// Beta, with a density in proportion to x^(a - 1) (1 - x)^(b - 1): what one of two gamma numbers
/// is of their sum. Throws Error(value) unless a > 0 and b > 0, Error(dtype) for integers.
[[nodiscard]] Tensor beta(const Shape& shape, double a, double b, DType dtype = f32,
                          const Generator& generator = default_generator());
/// Poisson: int64 numbers of events, of the shape of `rates`, how many are expected; -1 where that
/// is negative or NaN. Below 10 by adding up probabilities, else the first of 20 tries that is
/// accepted (Hoermann, 1993): none is with a probability below 1e-12. Rates above 1e12 are drawn
/// less well: float64 has too few digits to tell which tries are.
[[nodiscard]] Tensor poisson(const Tensor& rates);
[[nodiscard]] Tensor poisson(const Tensor& rates, const Generator& generator);
/// Boolean of the shape of `probabilities`: true with each one's probability.
[[nodiscard]] Tensor bernoulli(const Tensor& probabilities);
[[nodiscard]] Tensor bernoulli(const Tensor& probabilities, const Generator& generator);

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
/// Parts of x along an axis, of a number n the integers 0 to n - 1, drawn into `shape`: each as
/// likely, or in proportion to its weight. Without `replaces` none comes twice, and those of weight
/// 0 come last.
/// weights: one axis, a number for each part.
/// Throws Error(shape) for a 0-d tensor or weights of another size, Error(value) where nothing can
/// be drawn, or without replacement not as many.
[[nodiscard]] Tensor choice(const Argument& x, const Shape& shape, bool replaces = true,
                            const std::optional<Tensor>& weights = {}, Integer axis = 0);
[[nodiscard]] Tensor choice(const Argument& x, const Shape& shape, bool replaces,
                            const std::optional<Tensor>& weights, Integer axis,
                            const Generator& generator);

}  // namespace nitinol

#pragma GCC visibility pop
