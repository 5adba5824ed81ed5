// What statistics.cpp, norms.cpp and batch_norm.cpp share.
#pragma once

#include "core/op.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/axes.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/reduce.h"
#include "eager/ops/view.h"

#include <cstdint>
#include <string_view>

namespace nitinol {

/// The dtype of the result: that of x if floating, else f32.
inline DType result_dtype(const Tensor& x) {
  return is_floating(x.dtype()) ? x.dtype() : f32;
}

/// x in the dtype that is computed in: f32 or f64.
inline Tensor computed(const Tensor& x) {
  return cast(x, x.dtype() == f64 ? f64 : f32);
}

inline int64_t reduced_count(std::string_view where, const Tensor& x, const Dims& axes) {
  int64_t count = 1;
  for (const int64_t axis : normalize_axes(where, axes, x.rank())) {
    count *= x.shape()[static_cast<int>(axis)];
  }
  return count;
}

inline Tensor mean_of(const Tensor& x, const Dims& axes, KeepDims keep) {
  return sum(x, axes, keep) / static_cast<double>(reduced_count("mean", x, axes));
}

inline Tensor not_negative(const Tensor& variance) {
  return where(variance < 0, 0, variance);
}

/// All axes of this rank but one.
inline Dims other_axes(int64_t rank, int64_t axis) {
  Dims axes;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) axes.push_back(i);
  }
  return axes;
}

/// A number for each index of an axis as an operand beside what has this rank.
inline Tensor beside(const Tensor& numbers, int64_t rank, int64_t axis) {
  Shape column = Shape::filled(static_cast<int>(rank - axis), 1);
  column[0] = numbers.size();
  return reshape(numbers, column);
}

}  // namespace nitinol
