// The Kernel of a single op, as eager runs it; and the canonical order of its reduction.
#pragma once

#include "core/kernel.h"
#include "core/op.h"

#include <span>

namespace nitinol {

/// The kernel of an elementwise or create op. Operands: the position (create only), the inputs or
/// numbers, the output.
[[nodiscard]] Kernel elementwise_kernel(const Op& op, std::span<const Operand> operands);

/// The kernel of an index op that looks up. Operands: the indices, how many there are to choose
/// from and their distance (scalars), what is chosen from, the output.
[[nodiscard]] Kernel lookup_kernel(std::span<const Operand> operands);

/// The kernel of a reduce op: operands are the input and the output.
[[nodiscard]] Kernel reduction_kernel(const Op& op, DType input, DType result, Order order,
                                      StrideClass input_class, StrideClass output_class);

/// Order of reducing `axes` (normalised; design, section 5): sizes 1 are dropped; lanes if the
/// innermost axis left is reduced, else sequential.
[[nodiscard]] Order reduction_order_for(const Shape& shape, const Dims& axes);

}  // namespace nitinol
