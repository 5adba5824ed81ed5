// The operand of a reduction as rows of what is reduced.
#pragma once

#include "core/reduction.h"
#include "core/shape.h"
#include "core/tensor.h"

namespace nitinol::eager {

/// `x` with sizes 1 dropped, and the rows before the reduced axes.
struct RowView {
  Shape shape;
  Strides strides;
  Strides results;  ///< of what becomes of the rows, one after the other; 0 where reduced
  int rows = 0;
};

[[nodiscard]] RowView rows_first(const Tensor& x, const Dims& axes);

/// Whether the reduced axes are walked as one loop.
[[nodiscard]] bool reduced_dims_merge(const RowView& view);

/// Whether the elements of a row are nearer to each other in memory than the rows are.
[[nodiscard]] bool lies_along(const RowView& view);

/// Visits the rows, and what is reduced of each, in the order of memory; and once what is there
/// again and again, if that is the same. For reductions whose order of joining does not show.
void follow_memory(RowView& view, Combine combine);

}  // namespace nitinol::eager
