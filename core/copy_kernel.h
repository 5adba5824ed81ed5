// The kernel of a copy, which planners and backends make alike.
#pragma once

#include "core/kernel.h"

namespace nitinol {

/// Stores each element of operand 0, an input, where operand 1, an output of the same dtype, has
/// it. Both move to the next element along the innermost loop; who knows better sets
/// Operand::inner.
[[nodiscard]] Kernel copy_kernel(DType dtype);

}  // namespace nitinol
