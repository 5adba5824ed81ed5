// Fused eager paths of composite ops that go row by row: one launch, and eager's bits.
//
// Each gives what the expansion in statistics.cpp gives, or an undefined tensor where it does not
// apply: it is for contiguous float32 and float64 whose innermost axes are a row.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

namespace nitinol {

/// `op` is the op of that name, with its inputs and attributes.
[[nodiscard]] Tensor fused_mean(const Op& op, Inputs inputs, const Attrs& attrs);
[[nodiscard]] Tensor fused_var(const Op& op, Inputs inputs, const Attrs& attrs);
[[nodiscard]] Tensor fused_std(const Op& op, Inputs inputs, const Attrs& attrs);
[[nodiscard]] Tensor fused_logsumexp(const Op& op, Inputs inputs, const Attrs& attrs);
[[nodiscard]] Tensor fused_softmax(const Op& op, Inputs inputs, const Attrs& attrs);
[[nodiscard]] Tensor fused_log_softmax(const Op& op, Inputs inputs, const Attrs& attrs);
[[nodiscard]] Tensor fused_layer_norm(const Op& op, Inputs inputs, const Attrs& attrs);

}  // namespace nitinol
