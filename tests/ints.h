// The elements of a tensor as integers, for tests to compare.
#pragma once

#include "core/tensor.h"

#include <cstdint>
#include <vector>

namespace nitinol::test {

[[nodiscard]] inline std::vector<int64_t> ints(const Tensor& x) {
  return x.to(i64).to_vector<int64_t>();
}

}  // namespace nitinol::test
