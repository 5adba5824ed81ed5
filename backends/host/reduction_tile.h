// The tiles of rows that a reduction is computed in (reduction.cpp).
#pragma once

#include "backends/host/domain.h"
#include "core/kernel.h"
#include "core/launch.h"

#include <cstddef>
#include <cstdint>

namespace nitinol::host {

/// Rows at once, along the last loop over rows.
[[nodiscard]] int64_t rows_of_tile(const Kernel& kernel, const Launch& launch,
                                   const Domain& domain);

/// How operands move: from row to row of a tile, from element to element of a row, and of one that
/// is farther apart, by a block or by all lanes.
struct TileSteps {
  Steps rows, reduced, blocks, lanes;
  TileSteps() {}  // NOLINT: large, and filled by find_steps
};
/// Inputs of Order::sequential whose elements lie side by side along what is reduced, not from row
/// to row: a block of them is turned before it is visited.
[[nodiscard]] bool is_turned(const Kernel& kernel, const Domain& domain, std::size_t operand);

void find_steps(const Kernel& kernel, const Domain& domain, int64_t width, int64_t block,
                TileSteps& steps);

}  // namespace nitinol::host
