// Images [n, c, h, w] whose elements lie in memory in the order [n, h, w, c]: all that the library
// decides about it.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

namespace nitinol {

namespace eager {

/// True if the op's result lies channels last because its operands do: an elementwise op on images.
[[nodiscard]] bool keeps_channels_last(const Op& op, Inputs inputs, const Spec& spec);

/// current().run(...) of such an op, on its operands as the [n, h, w, c] that they are in memory.
[[nodiscard]] Tensor run_channels_last(const Op& op, Inputs inputs, const Attrs& attrs,
                                       const Spec& spec);

}  // namespace eager

/// [n, c, h, w] as [n, h, w, c], and back: views. For ops that compute in this order, whatever lies
/// in memory: convolution, pooling, normalisation of a batch.
[[nodiscard]] Tensor channels_last(const Tensor& x);
[[nodiscard]] Tensor channels_first(const Tensor& x);

}  // namespace nitinol
