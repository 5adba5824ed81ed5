// Composite ops in eager: what an op expands to, as the kernels that compiled code has for it.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

namespace nitinol::eager {

/// The result of a composite op on operands that no trace and no tape looks at. The first call with
/// operands of some layout runs what the op expands to, op by op; the next notes what that was and
/// has a kernel generated for it, if one kernel can do it and the device generates code; later ones
/// launch it. Bits are the same.
[[nodiscard]] Tensor run_composite(const Op& op, Inputs inputs, const Attrs& attrs);

}  // namespace nitinol::eager
