// Rearranging: the elements at other places, more than once, or some of them.
//
// Written with views, joins and where(), so compiled functions fuse them. Axes may be negative:
// they count from the end. Throws Error(shape) for axes that do not exist or are repeated.
#pragma once

#include "core/tensor.h"
#include "eager/ops/axes.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// Axis source[i] of x at place destination[i] of the result; the other axes keep their order.
/// Throws Error(shape) unless there are as many of both.
[[nodiscard]] Tensor moveaxis(const Tensor& x, const Axes& source, const Axes& destination);
/// The elements moved by `shift` places towards higher indices along an axis; those beyond the end
/// come in at the start. Several axes have a shift each, or one for all; without an axis the
/// elements are moved as one line.
/// Throws Error(shape) if there are several shifts and not as many axes.
[[nodiscard]] Tensor roll(const Tensor& x, const Dims& shift, const Axes& axis = {});

/// Each element `repeats` times, one beside the other along an axis; without an axis, of the
/// elements as one line. Throws Error(value) if `repeats` is negative.
[[nodiscard]] Tensor repeat(const Tensor& x, Integer repeats, std::optional<Integer> axis = {});
/// The same with a number for each element along the axis. They are looked at: how long the result
/// is depends on them. repeats: one axis. Throws Error(dtype) unless they are integers,
/// Error(value) if one is negative.
[[nodiscard]] Tensor repeat(const Tensor& x, const Tensor& repeats,
                            std::optional<Integer> axis = {});
/// x beside itself, repetitions[i] times along axis i. A list that is shorter than x has axes is
/// for the last ones; for a longer one x gets axes of size 1 in front. Throws Error(value) if a
/// number is negative.
[[nodiscard]] Tensor tile(const Tensor& x, const Dims& repetitions);

/// The parts of size 1 along an axis, without that axis: x[0], x[1], ... for axis 0.
[[nodiscard]] std::vector<Tensor> unstack(const Tensor& x, Integer axis = 0);
/// unstack, as PyTorch calls it.
[[nodiscard]] std::vector<Tensor> unbind(const Tensor& x, Integer axis = 0);

/// Matrices (the last two axes) with 0 above diagonal `k`: 0 is the main one, 1 the one above it.
[[nodiscard]] Tensor tril(const Tensor& x, Integer k = 0);
/// Matrices (the last two axes) with 0 below diagonal `k`: 0 is the main one, 1 the one above it.
[[nodiscard]] Tensor triu(const Tensor& x, Integer k = 0);
/// A diagonal of matrices (the last two axes), as one axis in their place. `offset`: 0 is the main
/// one, 1 the one above it.
[[nodiscard]] Tensor diagonal(const Tensor& x, Integer offset = 0);
/// Of a line, the matrix with it on diagonal `k` and zeros elsewhere; of a matrix, that diagonal.
/// Throws Error(shape) for other tensors.
[[nodiscard]] Tensor diag(const Tensor& x, Integer k = 0);
/// The sum of a diagonal of matrices (the last two axes). Integers and booleans are summed as
/// int64.
[[nodiscard]] Tensor trace(const Tensor& x, Integer offset = 0);

/// Differences of neighbours along an axis, taken `n` times: x[1] - x[0], x[2] - x[1], ...
/// Throws Error(value) if n is negative, Error(dtype) for booleans.
[[nodiscard]] Tensor diff(const Tensor& x, Integer n = 1, Integer axis = -1);

/// The tensors at the shape to which all broadcast. Throws Error(shape) if there is none.
[[nodiscard]] std::vector<Tensor> broadcast_arrays(std::span<const Tensor> tensors);
[[nodiscard]] std::vector<Tensor> broadcast_arrays(std::initializer_list<Tensor> tensors);
/// The shape to which all these broadcast; {} for none. Throws Error(shape) if there is none.
[[nodiscard]] Shape broadcast_shapes(std::span<const Shape> shapes);
[[nodiscard]] Shape broadcast_shapes(std::initializer_list<Shape> shapes);
/// Coordinates of the points of a grid: for each line of numbers a tensor of the grid's shape. With
/// `is_xy` the first two axes are exchanged, so that the first line runs along columns.
/// Throws Error(shape) for tensors of more than one axis.
[[nodiscard]] std::vector<Tensor> meshgrid(std::span<const Tensor> tensors, bool is_xy = true);
[[nodiscard]] std::vector<Tensor> meshgrid(std::initializer_list<Tensor> tensors,
                                           bool is_xy = true);
/// Two axes exchanged.
[[nodiscard]] Tensor swapaxes(const Tensor& x, Integer a, Integer b);
/// Turned by 90 degrees k times in the plane of two axes, from the first towards the second.
[[nodiscard]] Tensor rot90(const Tensor& x, Integer k = 1, const Dims& axes = {0, 1});
/// Parts along an axis: as many as `count`, of which the last may be shorter or missing.
/// Throws Error(value) for a count below 1.
[[nodiscard]] std::vector<Tensor> chunk(const Tensor& x, Integer count, Integer axis = 0);
/// All windows of `size` along an axis, one after another `step` further on, as a new last axis.
/// Throws Error(shape) if none fits, Error(value) for a size or step below 1.
[[nodiscard]] Tensor sliding_window(const Tensor& x, Integer axis, Integer size, Integer step = 1);

}  // namespace nitinol

#pragma GCC visibility pop
