// Axes of size 1 behind a tensor's own.
#pragma once

#include "eager/ops/view.h"

namespace nitinol {

/// x of `rank` axes: with axes of size 1 behind its own, so that it broadcasts over rows.
[[nodiscard]] inline Tensor with_trailing_axes(const Tensor& x, int rank) {
  Shape shape = x.shape();
  while (shape.size() < rank) shape.push_back(1);
  return reshape(x, shape);
}

}  // namespace nitinol
