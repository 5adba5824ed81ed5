// What losses are made of, as ops that say how they are differentiated.
#pragma once

#include "core/tensor.h"

namespace nitinol {

/// `wanted`, 1 at a class and 0 at others along the last axis, with a share of `smoothing` spread
/// over all (C. Szegedy et al., arXiv:1512.00567, section 7).
[[nodiscard]] Tensor smoothed(const Tensor& wanted, double smoothing);

/// log_softmax() of scores[..., classes] at labels[...], or, with a smoothing other than 0, its
/// mean weighted by the smoothed labels. A label that is no class has 0. Classes that are not asked
/// for may be impossible (-infinity). Throws Error(shape) for scores of no axes.
[[nodiscard]] Tensor log_likelihood(const Tensor& scores, const Tensor& labels, double smoothing);

/// Of differences d: bend d^2 up to |d| = delta, and slope (|d| - delta / 2) beyond, where they
/// meet if slope = 2 bend delta (P. J. Huber, Robust estimation of a location parameter, 1964).
[[nodiscard]] Tensor huber(const Tensor& differences, double delta, double bend, double slope);

}  // namespace nitinol
