// The tiles of rows that a reduction is computed in (reduction.cpp).
#pragma once

#include "backends/host/domain.h"
#include "backends/host/scratch.h"
#include "core/kernel.h"
#include "core/launch.h"

#include <cstddef>
#include <cstdint>

namespace nitinol::host {

/// Rows at once, along the last loop over rows.
[[nodiscard]] int64_t rows_of_tile(const Kernel& kernel, const Launch& launch,
                                   const Domain& domain);

/// Inputs of Order::sequential whose elements lie side by side along what is reduced, not from row
/// to row: a block of them is turned before it is visited.
[[nodiscard]] bool is_turned(const Kernel& kernel, const Domain& domain, std::size_t operand);
[[nodiscard]] bool has_turned(const Kernel& kernel, const Domain& domain);

/// How operands move: from row to row of a tile, from element to element of a row, and of a lane.
struct TileSteps {
  Steps rows, reduced, lanes;
  TileSteps() {}  // NOLINT: large, and filled by who needs it
};

/// Points that one call of a stage visits: so many of each row, of so many rows.
struct Piece {
  const int64_t *reduced, *rows;  ///< steps
  int64_t length, row_count;
};
/// By operand: memory for `points` of it, if it is turned; else null.
[[nodiscard]] char** take_turned(const Kernel& kernel, const Domain& domain, int64_t points,
                                 Scratch& scratch);
/// The same points, after what is turned has been: `memory` is from take_turned().
[[nodiscard]] Piece turned(const Kernel& kernel, const Domain& domain, const Piece& piece,
                           char* const* memory, Pointers& pointers, TileSteps& steps);

/// Those of Order::across: what is kept lies as a tile's rows are visited, in memory of its own or
/// in an output.
void find_steps(const Kernel& kernel, const Domain& domain, int64_t width, int64_t lanes,
                TileSteps& steps);

}  // namespace nitinol::host
