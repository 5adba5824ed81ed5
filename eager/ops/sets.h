// Elements as sets, and how often they occur.
//
// How many elements differ is known when they have been computed: a compiled function that asks
// runs in segments. NaN differs from NaN.
#pragma once

#include "core/tensor.h"
#include "eager/argument.h"

#include <optional>
#include <source_location>

#pragma GCC visibility push(default)

namespace nitinol {

/// What unique_all gives.
struct Unique {
  Tensor values;           ///< 1-d, ascending; dtype of x
  Tensor indices;          ///< int64: where in x, in row-major order, each occurs first
  Tensor inverse_indices;  ///< int64 of x's shape: which of the values each element is
  Tensor counts;           ///< int64: how often each occurs
};
/// The elements that differ, in ascending order, with where and how often they are in x.
[[nodiscard]] Unique unique_all(const Tensor& x,
                                std::source_location place = std::source_location::current());
/// The elements that differ, and how often each occurs.
struct UniqueCounts {
  Tensor values;  ///< 1-d, ascending; dtype of x
  Tensor counts;  ///< int64
};
/// The elements that differ, in ascending order, and how often each occurs in x.
[[nodiscard]] UniqueCounts unique_counts(
    const Tensor& x, std::source_location place = std::source_location::current());
/// The elements that differ, and which of them each element is.
struct UniqueInverse {
  Tensor values;           ///< 1-d, ascending; dtype of x
  Tensor inverse_indices;  ///< int64 of x's shape
};
/// The elements that differ, in ascending order, and which of them each element of x is.
[[nodiscard]] UniqueInverse unique_inverse(
    const Tensor& x, std::source_location place = std::source_location::current());
/// The elements that differ, 1-d, in ascending order.
[[nodiscard]] Tensor unique_values(const Tensor& x,
                                   std::source_location place = std::source_location::current());

/// Boolean of the shape of x: whether each element is one of `elements`, of any shape.
[[nodiscard]] Tensor isin(const Argument& x, const Argument& elements);

/// How often each of the integers 0, 1, ... occurs in x, 1-d: as many as `length`, or up to the
/// largest in x, but at least `minlength` (then a compiled function runs in segments). With
/// weights, of the shape of x, their sums instead. Throws Error(value) for an integer that is
/// negative or not below `length`.
[[nodiscard]] Tensor bincount(const Tensor& x, std::optional<Tensor> weights = {},
                              Integer minlength = 0, std::optional<Integer> length = {},
                              std::source_location place = std::source_location::current());

/// Numbers counted in ranges.
struct Histogram {
  Tensor counts;  ///< int64; of weights the sums
  Tensor edges;   ///< one more than there are counts; floating
};
/// How many elements of x lie in each of `bins` ranges of equal width between low and high, of
/// which the last one has its upper edge; others are not counted.
/// Throws Error(value) unless bins > 0 and low < high.
[[nodiscard]] Histogram histogram(const Tensor& x, Integer bins, double low, double high);

}  // namespace nitinol

#pragma GCC visibility pop
