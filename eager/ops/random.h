// Random tensors: counter-based, so that eager and compiled code draw the same numbers.
//
// Each call takes as many counters as the result has elements from the generator
// (core/generator.h); element i is a function of the generator's key and its counter + i only.
#pragma once

#include "core/generator.h"
#include "core/op.h"
#include "core/tensor.h"

#include <cstdint>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

// Results lie on the generator's device.

/// Uniform in [0, 1): multiples of 2^-24 (float32) or 2^-53 (float64).
/// Throws Error(dtype) for other dtypes.
[[nodiscard]] Tensor rand(const Shape& shape, DType dtype = f32,
                          const Generator& generator = default_generator());
/// Normal with mean 0 and standard deviation 1; floating dtypes (16-bit ones round float32).
[[nodiscard]] Tensor randn(const Shape& shape, DType dtype = f32,
                           const Generator& generator = default_generator());
/// Integers in [low, high), all equally likely up to 2^-64 (high - low).
/// Throws Error(value) unless low < high, Error(dtype) unless dtype is an integer one.
[[nodiscard]] Tensor randint(int64_t low, int64_t high, const Shape& shape, DType dtype = i64,
                             const Generator& generator = default_generator());
/// The int64 numbers 0 to n - 1 in random order (core/permutation.h).
/// Throws Error(value) for a negative n.
[[nodiscard]] Tensor permutation(Integer n, const Generator& generator = default_generator());

/// Of the shape, dtype and device of `like`. Throws Error(device) for a generator of another
/// device.
[[nodiscard]] Tensor rand_like(const Tensor& like);
[[nodiscard]] Tensor rand_like(const Tensor& like, const Generator& generator);
[[nodiscard]] Tensor randn_like(const Tensor& like);
[[nodiscard]] Tensor randn_like(const Tensor& like, const Generator& generator);

/// Starts the streams of all default generators anew, those of `seed`.
void manual_seed(uint64_t seed);

[[nodiscard]] std::span<const Op> random_ops();

}  // namespace nitinol

#pragma GCC visibility pop
