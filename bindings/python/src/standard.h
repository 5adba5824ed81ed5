// Functions of the Python Array API standard (2024.12) that take more, or in another order, than
// C++'s do. generate.py binds them as it binds those of the library's headers.
#pragma once

#include "bindings/python/src/from.h"

#include <optional>
#include <span>

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
/// Each element `repeats` times, one beside the other along an axis; without an axis, of the
/// elements as one line. `repeats` is a number, or one for each element along the axis: those are
/// looked at, as the length of the result depends on them. Throws Error(value) if one is negative.
[[nodiscard]] Tensor repeat(const Tensor& x, const Operand& repeats,
                            std::optional<Integer> axis = {});
/// Differences of neighbours along an axis, taken `n` times: x[1] - x[0], x[2] - x[1], ...
/// `prepend` and `append` are joined to x first.
/// Throws Error(value) if n is negative, Error(dtype) for booleans.
[[nodiscard]] Tensor diff(const Tensor& x, Integer axis = -1, Integer n = 1,
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

}  // namespace nitinol::python::standard
