// Images [n, c, h, w] whose elements lie in memory in the order [n, h, w, c], as convolutions leave
// them. Elementwise ops keep that order (eager/memory_order.h).
#pragma once

#include "core/tensor.h"

namespace nitinol {

/// [n, c, h, w] as [n, h, w, c], and back: views. For ops that compute in this order, whatever lies
/// in memory: convolution, pooling, normalisation of a batch.
[[nodiscard]] Tensor channels_last(const Tensor& x);
[[nodiscard]] Tensor channels_first(const Tensor& x);

}  // namespace nitinol
