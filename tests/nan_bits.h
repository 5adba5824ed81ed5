// Bits of NaN.
#pragma once

#include "core/dtype.h"

#include <cstdint>

namespace nitinol::test {

/// Whether the bits of an element are those of a NaN.
inline bool is_nan(DType dtype, uint64_t bits) {
  switch (dtype) {
    case f16:
      return (bits & 0x7fff) > 0x7c00;
    case bf16:
      return (bits & 0x7fff) > 0x7f80;
    case f32:
      return (bits & 0x7fffffff) > 0x7f800000;
    case f64:
      return (bits & ~(uint64_t{1} << 63)) > 0x7ff0000000000000;
    default:
      return false;
  }
}

}  // namespace nitinol::test
