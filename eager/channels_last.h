// Images [n, c, h, w] whose elements lie in memory in the order [n, h, w, c].
#pragma once

#include "core/op.h"
#include "core/tensor.h"

namespace nitinol::eager {

/// current().run(...), but an elementwise op on images that lie in channels-last order is run on
/// them as the [n, h, w, c] that they are in memory, and gives a result in that order.
[[nodiscard]] Tensor run_in_layout(const Op& op, Inputs inputs, const Attrs& attrs,
                                   const Spec& spec);

}  // namespace nitinol::eager

namespace nitinol {

/// [n, c, h, w] as [n, h, w, c], and back: views.
[[nodiscard]] Tensor channels_last(const Tensor& x);
[[nodiscard]] Tensor channels_first(const Tensor& x);

}  // namespace nitinol
