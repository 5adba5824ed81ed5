// The Kernel of a single op, as eager runs it; and the canonical order of its reduction.
#pragma once

#include "core/kernel.h"
#include "core/op.h"

#include <cstddef>
#include <span>

namespace nitinol {

/// Outputs of this many bytes or more go around the caches: well beyond a last-level cache.
inline constexpr std::size_t streaming_bytes = std::size_t{32} << 20;

/// The kernel of an elementwise or create op. Operands: the position (create only), the inputs, the
/// output; `classes` has one entry for each.
[[nodiscard]] Kernel elementwise_kernel(const Op& op, std::span<const DType> inputs, DType result,
                                        std::span<const StrideClass> classes);

/// The kernel of a reduce op: operands are the input and the output.
[[nodiscard]] Kernel reduction_kernel(const Op& op, DType input, DType result, Order order,
                                      StrideClass input_class, StrideClass output_class);

/// Order of reducing `axes` (normalised; design, section 5): sizes 1 are dropped; lanes if the
/// innermost axis left is reduced, else sequential.
[[nodiscard]] Order reduction_order_for(const Shape& shape, const Dims& axes);

}  // namespace nitinol
