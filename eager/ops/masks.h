// What a boolean tensor chooses: x[mask], nonzero, and their opposites.
//
// How many elements a mask chooses is known when it has been computed: a compiled
// function that asks runs in segments, unless it says how many there are (`size`).
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/argument.h"
#include "eager/ops/axes.h"

#include <optional>
#include <source_location>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// x[mask]: the elements where the mask is true, in row-major order, or the parts of x at them if
/// the mask has fewer axes, which are the first of x. With `size`, the first so many, and zeros for
/// those that there are not: that is compiled.
/// Throws Error(shape) unless the mask's shape is that of the first axes of x, Error(dtype) unless
/// it is boolean.
[[nodiscard]] Tensor masked_select(const Tensor& x, const Tensor& mask,
                                   std::optional<Integer> size = {},
                                   std::source_location place = std::source_location::current());
/// x with `value` where the mask, which broadcasts, is true; dtype of x.
/// Throws Error(dtype) unless the mask is boolean.
[[nodiscard]] Tensor masked_fill(const Tensor& x, const Tensor& mask, const Argument& value);
/// x with those of `values`, one after another, where the mask is true: the opposite of
/// masked_select. One value, or one of the first axis, is for all.
/// Throws Error(shape) unless the mask's shape is that of the first axes of x, Error(value) unless
/// the mask chooses as many as there are: also from a compiled function.
[[nodiscard]] Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Argument& values);

/// Where x is not zero: for each axis the int64 indices along it, in row-major order. With `size`,
/// the first so many, and -1 for those that there are not: that is compiled.
/// Throws Error(shape) for a 0-d tensor.
[[nodiscard]] std::vector<Tensor> nonzero(
    const Tensor& x, std::optional<Integer> size = {},
    std::source_location place = std::source_location::current());
/// The same as one tensor: a row of int64 indices for each element that is not zero.
[[nodiscard]] Tensor argwhere(const Tensor& x, std::optional<Integer> size = {},
                              std::source_location place = std::source_location::current());
/// int64 number of elements that are not zero.
[[nodiscard]] Tensor count_nonzero(const Tensor& x, const Axes& axes = {},
                                   KeepDims keep = KeepDims::no);

[[nodiscard]] std::span<const Op> masks_ops();

}  // namespace nitinol

#pragma GCC visibility pop
