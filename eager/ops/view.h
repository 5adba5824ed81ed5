// Views: other shapes of the same elements.
//
// The result shares the memory of x and copies nothing, but for some reshapes. Axes and indices may
// be negative: they count from the end. Throws Error(shape) for axes that do not exist or are
// repeated and for shapes that do not fit.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/ops/axes.h"

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// The elements in row-major order as another shape of the same size; one size may be -1: what is
/// left. Copies if strides cannot express it.
[[nodiscard]] Tensor reshape(const Tensor& x, const Shape& shape);
/// The axes from `first_axis` to `last_axis` as one: of [n, c, h, w], flatten(x, 1) is
/// [n, c * h * w]; a 0-d tensor gets an axis. Throws Error(shape) if the last one comes before the
/// first.
[[nodiscard]] Tensor flatten(const Tensor& x, Integer first_axis = 0, Integer last_axis = -1);
/// The axes in another order: axis i of the result is axis axes[i] of x.
[[nodiscard]] Tensor permute(const Tensor& x, const Dims& axes);
/// Two axes exchanged; by default the last two.
[[nodiscard]] Tensor transpose(const Tensor& x, Integer a = -2, Integer b = -1);
/// Sizes 1 and new leading dimensions repeated up to `shape`; -1 keeps the size of x.
[[nodiscard]] Tensor expand(const Tensor& x, const Shape& shape);
/// Without the given axes of size 1, or without all of them. Throws Error(shape) for a given axis
/// of another size.
[[nodiscard]] Tensor squeeze(const Tensor& x, const Axes& axes = {});
/// With a new axis of size 1 at position `axis` of the result.
[[nodiscard]] Tensor unsqueeze(const Tensor& x, Integer axis);
/// x with at least one axis: a 0-d tensor gets one.
[[nodiscard]] Tensor atleast_1d(const Tensor& x);
/// x with at least two axes: a line becomes a row, [1, n].
[[nodiscard]] Tensor atleast_2d(const Tensor& x);
/// x with at least three axes: of a line [1, n, 1], of a matrix [m, n, 1].
[[nodiscard]] Tensor atleast_3d(const Tensor& x);
/// The elements in reverse order along the axes.
[[nodiscard]] Tensor flip(const Tensor& x, const Axes& axes = {});

/// A range of indices along one axis, as Python's slices: `Range{1, 4}`, `Range{.step = -1}`.
/// Negative bounds count from the end, bounds beyond the end are cut; the step may be negative.
struct Range {
  static constexpr int64_t open = std::numeric_limits<int64_t>::min();  ///< up to the very end
  Integer start = open;
  Integer stop = open;
  Integer step = 1;
};

/// A range along an axis of a certain size: start, start + step, ... `count` times.
struct IndexRun {
  int64_t start = 0, count = 0, step = 1;
};
/// Throws Error(value) if the step is 0.
[[nodiscard]] IndexRun resolve(const Range& range, int64_t size);

/// The elements of a range along one axis.
[[nodiscard]] Tensor slice(const Tensor& x, Integer axis, const Range& range);
/// Consecutive parts of `length` along an axis; the last may be shorter.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, Integer length, Integer axis = 0);
/// Consecutive parts of these lengths. Throws Error(value) unless all are at least 0 and their sum
/// is the size of the axis.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, const Dims& lengths, Integer axis = 0);

/// The window of a view: per axis its first index, size and step (which may be negative).
[[nodiscard]] Tensor window(const Tensor& x, const Dims& starts, const Shape& sizes,
                            const Dims& steps);

[[nodiscard]] std::span<const Op> view_ops();

}  // namespace nitinol

#pragma GCC visibility pop
