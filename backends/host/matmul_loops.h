// Matrix products that oneDNN does not offer: f64 and integers.
#pragma once

#include "core/dtype.h"

#include <cstdint>

namespace nitinol::host {

/// One operand of a product of matrices: its first element, and strides in elements.
struct MatrixView {
  void* data = nullptr;
  int64_t row = 0, column = 0;
};

/// c[m, n] = a[m, k] b[k, n].
struct MatrixProduct {
  int64_t m = 0, n = 0, k = 0;
  MatrixView a, b, c;
};

/// The product for f32, f64 and integers, which wrap. Each element is 0 + a[0] b[0] + a[1] b[1] +
/// ... in that order, product and sum rounded each, whatever the threads and instruction set.
void multiply(DType dtype, const MatrixProduct& product, int threads);

}  // namespace nitinol::host
