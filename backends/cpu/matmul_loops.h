// Matrix products that oneDNN does not offer: f64 and integers.
#pragma once

#include "core/dtype.h"

#include <cstdint>

namespace nitinol::cpu {

/// One operand of a product of matrices: its first element, and strides in elements.
struct MatrixView {
  void* data = nullptr;
  int64_t row = 0, column = 0;
};

/// c[m, n] = a[m, k] b[k, n] for f64 and integers, which wrap. Each element is 0 + a[0] b[0] + a[1]
/// b[1] + ... in that order, product and sum rounded each, whatever the threads and instruction
/// set.
void multiply(DType dtype, int64_t m, int64_t n, int64_t k, const MatrixView& a,
              const MatrixView& b, const MatrixView& c, int threads);

}  // namespace nitinol::cpu
