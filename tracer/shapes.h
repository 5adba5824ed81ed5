// Ops on tensors that have shapes but no elements.
#pragma once

#include "core/op.h"

namespace nitinol::tracer {

/// The result of `op` as far as its spec and its strides, without elements.
[[nodiscard]] Tensor run_on_shapes(const Op& op, Inputs inputs, const Attrs& attrs,
                                   const Spec& spec);

}  // namespace nitinol::tracer
