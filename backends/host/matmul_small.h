// Many products of small matrices, as of a rotation for each of a million points.
#pragma once

#include "backends/host/matmul_loops.h"
#include "core/dtype.h"

#include <array>
#include <cstdint>

namespace nitinol::host {

/// Whether `count` products of m x k by k x n are faster by multiply_many() than one by one.
[[nodiscard]] bool are_many_small(int64_t m, int64_t n, int64_t k, int64_t count);

/// The sum over k of each element is one chain in the compute type, so bits depend on nothing; it
/// is rounded to `dtype` at its end. `first`: the first product; operand i of the next one lies
/// steps[i] elements on.
void multiply_many(DType dtype, const MatrixProduct& first, const std::array<int64_t, 3>& steps,
                   int64_t count, int threads);

}  // namespace nitinol::host
