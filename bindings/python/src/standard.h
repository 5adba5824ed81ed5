// Functions of the Python Array API standard (2024.12) that take more, or in another order, than
// C++'s do. generate.py binds them as it binds those of the library's headers.
#pragma once

#include "bindings/python/src/from.h"
#include "bindings/python/src/lengths.h"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::python::standard {

/// x limited to [min, max]; either may be left out. NaN stays NaN. At a bound the gradient passes
/// to x, and none to the bound.
[[nodiscard]] Tensor clip(const Operand& x, const std::optional<Operand>& min = {},
                          const std::optional<Operand>& max = {});

/// Sum. Integers and booleans are summed as int64; float16 and bfloat16 accumulate in float32.
/// With a `dtype`, elements are cast to it first, and so is the result.
[[nodiscard]] Tensor sum(const Tensor& x, const Axes& axis = {}, std::optional<DType> dtype = {},
                         KeepDims keepdims = KeepDims::no);
/// Product; dtypes as sum.
[[nodiscard]] Tensor prod(const Tensor& x, const Axes& axis = {}, std::optional<DType> dtype = {},
                          KeepDims keepdims = KeepDims::no);
/// Mean square distance from the mean, in two passes; divides by the number of elements -
/// correction. Throws Error(value) for a negative correction.
[[nodiscard]] Tensor var(const Tensor& x, const Axes& axis = {}, double correction = 0.0,
                         KeepDims keepdims = KeepDims::no);
/// Square root of var.
[[nodiscard]] Tensor stddev(const Tensor& x, const Axes& axis = {}, double correction = 0.0,
                            KeepDims keepdims = KeepDims::no);
/// Running sums along one axis, which only a tensor of one axis may leave out: result[j] = x[0] +
/// ... + x[j]. With include_initial they begin with 0, and there is one more. Dtypes as sum.
[[nodiscard]] Tensor cumulative_sum(const Tensor& x, std::optional<Integer> axis = {},
                                    std::optional<DType> dtype = {}, bool include_initial = false);

/// The elements of x as `dtype`; x itself if it has that dtype already (Tensors do not change, so
/// `copy` makes no difference).
///
/// Floating to integer saturates and NaN gives 0; integers wrap; a number to bool is x != 0; to a
/// narrower floating dtype rounds to nearest even.
[[nodiscard]] Tensor astype(const Tensor& x, DType dtype, bool copy = true,
                            std::optional<Device> device = {});

/// The elements in row-major order as another shape of the same size; one size may be -1: what is
/// left. Copies if strides cannot express it, unless `copy` is False: then throws Error(value) for
/// elements that do not lie in row-major order.
[[nodiscard]] Tensor reshape(const Tensor& x, const Shape& shape, std::optional<bool> copy = {});
/// With a new axis of size 1 at position `axis` of the result. Throws IndexError if there is none.
[[nodiscard]] Tensor expand_dims(const Tensor& x, Integer axis = 0);
/// Two axes exchanged, the last two unless others are given; or, given as one tuple, all axes in
/// that order.
[[nodiscard]] Tensor transpose(const Tensor& x, const std::optional<Dims>& axis1 = {},
                               std::optional<Integer> axis2 = {});
/// The last two axes exchanged. Throws Error(shape) for fewer than two.
[[nodiscard]] Tensor matrix_transpose(const Tensor& x);
/// The tensors one after another along an existing axis; None flattens them before. They have one
/// rank, equal sizes along the other axes, and meet in their common dtype.
/// Throws Error(shape) if sizes differ, Error(value) for no tensors.
[[nodiscard]] Tensor concat(std::span<const Tensor> arrays, std::optional<Integer> axis = 0);
/// x with elements around it, as many as the pair (before, after) of each axis says: `value`, 0
/// unless it is given, or, with another mode than "constant", its own: mirrored at the last one
/// ("reflect"), the last one
/// ("replicate", "edge"), or those from the other end ("circular", "wrap").
/// Throws Error(shape) unless there are as many pairs as axes, Error(value) if a number is
/// negative.
[[nodiscard]] Tensor pad(const Tensor& x, std::span<const Padding> paddings,
                         const std::optional<Operand>& value = {},
                         const std::string& mode = "constant");
/// Consecutive parts along an axis: of one `length`, where the last may be shorter, or of the
/// lengths of a list. Throws Error(value) unless their sum is the size of the axis.
[[nodiscard]] std::vector<Tensor> split(const Tensor& x, const Lengths& length, Integer axis = 0);
/// Each element `repeats` times, one beside the other along an axis; without an axis, of the
/// elements as one line. `repeats` is a number, or one for each element along the axis: those are
/// looked at, as the length of the result depends on them. Throws Error(value) if one is negative.
[[nodiscard]] Tensor repeat(const Tensor& x, const Operand& repeats,
                            std::optional<Integer> axis = {});
/// Differences of neighbours along an axis, taken `n` times: x[1] - x[0], x[2] - x[1], ...
/// `prepend` and `append` are joined to x first.
/// Throws Error(value) if n is negative, Error(dtype) for booleans.
[[nodiscard]] Tensor diff(const Tensor& x, Integer n = 1, Integer axis = -1,
                          const std::optional<Tensor>& prepend = {},
                          const std::optional<Tensor>& append = {});
/// One element of x for each index, which takes the index's place along `axis`: in two dimensions
/// and along axis 1, result[i, j] = x[i, indices[i, j]].
///
/// x: any dtype. indices: integers, as many axes as x; negative ones count from the end. Along the
/// other axes the two have equal sizes, or one has size 1 and is repeated.
/// Throws Error(shape) for sizes that differ, Error(value) for an index out of range.
[[nodiscard]] Tensor take_along_axis(const Tensor& x, const Tensor& indices, Integer axis = -1);

/// Of the shape of x, and its dtype and device unless others are given.
[[nodiscard]] Tensor zeros_like(const Tensor& x, std::optional<DType> dtype = {},
                                std::optional<Device> device = {});
[[nodiscard]] Tensor ones_like(const Tensor& x, std::optional<DType> dtype = {},
                               std::optional<Device> device = {});
[[nodiscard]] Tensor full_like(const Tensor& x, const Fill& fill_value,
                               std::optional<DType> dtype = {}, std::optional<Device> device = {});
/// Every element is fill_value. The dtype is its own unless one is given: float32 for a float.
[[nodiscard]] Tensor full(const Shape& shape, const Fill& fill_value,
                          std::optional<DType> dtype = {}, Device device = default_device());
/// start, start + step, ... before `stop`; computed in int64, exactly, if all three are integers,
/// else in float64. One number alone is `stop`. The dtype, unless given, is int64 or float32.
/// Throws Error(value) if step is 0, the length is not finite, or an integer dtype does not hold
/// all integers of the range.
[[nodiscard]] Tensor arange(const Scalar& start, const std::optional<Scalar>& stop = {},
                            const Scalar& step = 1, std::optional<DType> dtype = {},
                            Device device = default_device());
/// `num` evenly spaced numbers from start to stop, which is left out without `endpoint`; computed
/// in float64. Throws Error(dtype) unless dtype is floating.
[[nodiscard]] Tensor linspace(double start, double stop, Integer num, DType dtype = f32,
                              Device device = default_device(), bool endpoint = true);

/// Running products along one axis, as cumulative_sum.
[[nodiscard]] Tensor cumulative_prod(const Tensor& x, std::optional<Integer> axis = {},
                                     std::optional<DType> dtype = {}, bool include_initial = false);

/// The elements along an axis in order; always stable. NaN counts as greater than all numbers.
[[nodiscard]] Tensor sort(const Tensor& x, Integer axis = -1, bool descending = false,
                          bool stable = true);
/// int64 positions along an axis that put its elements in order; always stable. NaN counts as
/// greater than all numbers.
[[nodiscard]] Tensor argsort(const Tensor& x, Integer axis = -1, bool descending = false,
                             bool stable = true);
/// The k largest elements along an axis in descending order, or the smallest in ascending order,
/// and their int64 positions. Of equal ones the first. The line is not sorted.
/// Throws Error(value) unless 0 <= k <= the axis's size.
[[nodiscard]] Ordered topk(const Tensor& x, Integer k, Integer axis = -1, bool largest = true);
/// int64 places at which the elements of x2 can be put into x1, a line in ascending order (or, with
/// `sorter`, at those places), so that it stays sorted: before what is equal ("left"), or after it
/// ("right"). Shape of x2. Throws Error(shape) unless x1 has one axis.
[[nodiscard]] Tensor searchsorted(const Operand& x1, const Operand& x2,
                                  const std::string& side = "left",
                                  const std::optional<Tensor>& sorter = {});
/// Between which of the ascending boundaries the elements of x are, from 0 on; what is equal to a
/// boundary is below it, or with `right` above it.
[[nodiscard]] Tensor bucketize(const Operand& x, const Operand& boundaries, bool right = false);
/// The q-quantiles along an axis (of all elements if none is given): between the two nearest
/// elements in proportion, as numpy.quantile. The axes of q come first. NaN if there is one.
/// Throws Error(shape) for no elements, Error(value) for a number q beyond 0 and 1.
[[nodiscard]] Tensor quantile(const Tensor& x, const Operand& q, std::optional<Integer> axis = {},
                              KeepDims keepdims = KeepDims::no);

/// x, to whose rows (elements, if it has one axis) each value has arrived at its index: "set" (the
/// last one stays), "add", "multiply", "maximum" or "minimum". Negative indices count from the end;
/// values broadcast. Throws Error(value) for an index out of range.
[[nodiscard]] Tensor scatter(const Tensor& x, const Tensor& indices, const Operand& values,
                             const std::string& arrival = "set");
/// x, to which each value has arrived at its index along an axis, as in scatter: in two dimensions
/// and along axis 1 at x[i, indices[i, j]]. The opposite of take_along_axis, and NumPy's name for
/// it. Throws Error(shape) for sizes that differ, Error(value) for an index out of range.
[[nodiscard]] Tensor put_along_axis(const Tensor& x, const Tensor& indices, const Operand& values,
                                    Integer axis, const std::string& arrival = "set");

/// Sums of products over the last `axes` axes of x1 and the first of x2, or over named axes of
/// each, pair by pair.
[[nodiscard]] Tensor tensordot(const Tensor& x1, const Tensor& x2, Integer axes = 2,
                               const std::optional<Dims>& axes1 = {},
                               const std::optional<Dims>& axes2 = {});
/// Sum of a diagonal of matrices, the last two axes; `offset` columns right of the main one. With a
/// `dtype`, elements are cast to it first, and so is the result.
/// Throws Error(shape) for fewer than two axes.
[[nodiscard]] Tensor trace(const Tensor& x, Integer offset = 0, std::optional<DType> dtype = {});
/// Norms of matrices, the last two axes: "fro", "1", "-1", "inf" or "-inf".
/// Throws Error(value) for another norm.
[[nodiscard]] Tensor matrix_norm(const Tensor& x, KeepDims keepdims = KeepDims::no,
                                 const std::string& ord = "fro");

/// Coordinates of the points of a grid: for each line of numbers a tensor of the grid's shape, in
/// which the first line runs along columns ("xy") or rows ("ij").
[[nodiscard]] std::vector<Tensor> meshgrid(std::span<const Tensor> arrays,
                                           const std::string& indexing = "xy");
/// Of the shape, dtype and device of x, elements that do not matter: zeros.
[[nodiscard]] Tensor empty_like(const Tensor& x, std::optional<DType> dtype = {},
                                std::optional<Device> device = {});

}  // namespace nitinol::python::standard
