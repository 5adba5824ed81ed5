// What tests of several ranks share.
#pragma once

#include "nitinol.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace nitinol::test {

inline int ranks() {
  return dist::world().size();
}
inline int rank() {
  return dist::world().rank();
}

/// What rank `r` has: numbers whose sum depends on the order in which they are added. The processor
/// computes them, since a GPU made of CPU code is slow.
inline Tensor of_rank(int r, const Shape& shape, DType dtype = f32) {
  const Tensor line = arange(0, element_count(shape), 1, f64, Device{});
  const auto numbers = [&]() -> Tensor {
    if (is_floating(dtype))
      return cast(sin(line * 0.7 + r) * exp(sin(line * 1.3 + 2.1 * r) * 6), dtype);
    if (dtype == boolean) return remainder(line + r, 3) == 0;
    return cast(remainder(line * 7 + r * 11, 100), dtype);
  };
  return reshape(numbers(), shape).to(default_device());
}
inline Tensor own(const Shape& shape, DType dtype = f32) {
  return of_rank(rank(), shape, dtype);
}
/// All ranks' tensors along a new first axis.
inline Tensor of_all(const Shape& shape, DType dtype = f32) {
  std::vector<Tensor> all;
  for (int r = 0; r < ranks(); ++r) all.push_back(of_rank(r, shape, dtype));
  return stack(all, 0);
}

}  // namespace nitinol::test
