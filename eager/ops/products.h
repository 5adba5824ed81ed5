// Products of vectors and matrices, and norms.
//
// Compositions of multiplication, sums and matmul. Dtypes meet as in those: sums of integers are
// int64.
#pragma once

#include "core/op.h"
#include "core/tensor.h"
#include "eager/ops/axes.h"

#include <optional>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

/// Sums of products over the last `axes` axes of a and the first of b; 0 gives all products.
/// Throws Error(shape) for sizes that differ.
[[nodiscard]] Tensor tensordot(const Tensor& a, const Tensor& b, Integer axes = 2);
/// The same over named axes of a, and as many of b, pair by pair.
[[nodiscard]] Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& a_axes,
                               const Dims& b_axes);
/// Sum of products along an axis of both, which broadcast.
[[nodiscard]] Tensor vecdot(const Tensor& a, const Tensor& b, Integer axis = -1);
/// All products of an element of a and one of b, which are flattened.
[[nodiscard]] Tensor outer(const Tensor& a, const Tensor& b);
/// Sums of products over the last axes; the product, if one is 0-d.
[[nodiscard]] Tensor inner(const Tensor& a, const Tensor& b);
/// Kronecker product: each element of a times the whole of b, along all axes.
[[nodiscard]] Tensor kron(const Tensor& a, const Tensor& b);
/// Cross product of vectors of 3 along an axis. Throws Error(shape) for other sizes.
[[nodiscard]] Tensor cross(const Tensor& a, const Tensor& b, Integer axis = -1);

/// (sum of |x|^p)^(1/p) over axes; the largest |x| for p = inf, the smallest for -inf, and how many
/// are not zero for 0. Integers are computed as float32.
[[nodiscard]] Tensor vector_norm(const Tensor& x, const Axes& axes = {}, double p = 2,
                                 KeepDims keep = KeepDims::no);
/// Norms of matrices, the last two axes.
enum class MatrixNorm : unsigned char {
  frobenius,       ///< square root of the sum of squares
  one,             ///< largest sum of |x| along a column
  minus_one,       ///< smallest one
  infinity,        ///< largest sum of |x| along a row
  minus_infinity,  ///< smallest one
};
/// A norm of matrices. Integers are computed as float32. Throws Error(shape) for less than 2 axes.
[[nodiscard]] Tensor matrix_norm(const Tensor& x, MatrixNorm norm = MatrixNorm::frobenius,
                                 KeepDims keep = KeepDims::no);
/// Square matrices multiplied n times, by squaring; the unit matrix for 0.
/// Throws Error(shape) unless matrices are square, Error(value) for a negative n.
[[nodiscard]] Tensor matrix_power(const Tensor& x, Integer n);

/// The ops of this file.
[[nodiscard]] std::span<const Op> products_ops();

}  // namespace nitinol

#pragma GCC visibility pop
