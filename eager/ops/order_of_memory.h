// Looking at an operand in the order of memory, where the order of its axes does not show.
#pragma once

#include "eager/ops/axes.h"

namespace nitinol {

/// A tensor, and the axes of it that are reduced.
struct Reduced {
  Tensor x;
  Dims axes;
};

/// `x` with its axes in the order of memory, for reductions whose order of joining does not show:
/// what is computed of it on the way lies as it does. As it is if the axes that are left over would
/// change their order, or somebody is to see the operations.
[[nodiscard]] Reduced in_order_of_memory(const Tensor& x, const Dims& axes);

}  // namespace nitinol
