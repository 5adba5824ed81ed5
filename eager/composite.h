// Composite ops in eager: what they expand to, as the kernels that compiled code has for it.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

namespace nitinol::eager {

/// What `expand` makes of operands that no trace and no tape looks at. The first call with operands
/// of some layout runs that op by op; the next notes which ops these were and has a kernel
/// generated for them, if one kernel can do it and the device generates code; later ones launch it.
/// Bits are the same.
[[nodiscard]] Tensor run_composite(Expand expand, Inputs inputs, const Attrs& attrs);

}  // namespace nitinol::eager
