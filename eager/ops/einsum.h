// Products and sums written as labels of axes.
#pragma once

#include "core/tensor.h"

#include <initializer_list>
#include <span>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// Einstein summation, as numpy.einsum: einsum("bik,bkj->bij", {a, b}) multiplies batches of
/// matrices.
///
/// Each operand has a letter for each of its axes; `...` stands for the axes without letters, which
/// broadcast. Axes of one letter have one size, or size 1. The result has the axes after `->`, or,
/// without an arrow, those of the letters that occur once, in alphabetical order; over all others
/// is summed. A letter twice in one operand takes its diagonal.
///
/// Operands are multiplied in pairs, in the order of least work; a pair that shares a summed letter
/// is a matrix product, of views where strides can express it, any other an elementwise one. The
/// dtype is the operands' promotion.
/// Throws Error(value) for an equation that makes no sense, Error(shape) for operands that do not
/// fit it, Error(dtype) for booleans.
[[nodiscard]] Tensor einsum(std::string_view equation, std::span<const Tensor> operands);
[[nodiscard]] Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands);

}  // namespace nitinol

#pragma GCC visibility pop
