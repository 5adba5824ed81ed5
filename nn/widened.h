// What is squared, or has many terms, is computed in float32 at least: float16 and bfloat16
// overflow, or lose it.
#pragma once

#include "core/tensor.h"
#include "eager/ops/cast.h"

namespace nitinol::nn {

inline Tensor widened(const Tensor& x) {
  return x.dtype() == f16 || x.dtype() == bf16 ? cast(x, f32) : x;
}

}  // namespace nitinol::nn
