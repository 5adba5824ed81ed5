// The Kernel of a single op, as eager runs it: that of a group of one.
#pragma once

#include "core/kernel.h"
#include "core/op.h"

namespace nitinol::fusion {

/// The kernel that computes `op`, whose inputs and result lie as these tensors say; their elements
/// are not looked at, and may be nowhere. Operands: the position (create ops), the inputs, which
/// are numbers or in memory, the result; of ops that look up, the indices, how many there are to
/// choose from and their distance, what is chosen from, and the result. `order` is that of a
/// reduction, whose attributes say what is reduced.
[[nodiscard]] Kernel lower_op(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& result,
                              Order order = Order::none);

}  // namespace nitinol::fusion
