// The order in which the elements of a result lie in memory.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

namespace nitinol::eager {

/// The axes in the order in which the op's result lies, where that is not row-major: an elementwise
/// op's, all of whose whole operands lie in that one order. Empty: row-major.
[[nodiscard]] Dims memory_order(const Op& op, Inputs inputs, const Spec& spec);

/// current().run(...) of such an op, on its operands with their axes in that order.
[[nodiscard]] Tensor run_in_order(const Dims& order, const Op& op, Inputs inputs,
                                  const Attrs& attrs, const Spec& spec);

}  // namespace nitinol::eager
