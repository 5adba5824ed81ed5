// The tiles of rows, and of blocks of few rows, that a reduction is computed in (reduction.cpp).
#pragma once

#include "backends/host/block_stack.h"
#include "backends/host/domain.h"
#include "backends/host/scratch.h"
#include "core/kernel.h"
#include "core/launch.h"

#include <array>
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

/// Blocks at a time, a power of two: 1 if there are too many rows, or too few blocks.
[[nodiscard]] int64_t blocks_abreast(const Kernel& kernel, const Domain& domain);

/// Whether a stage may see them: what it reads lies so, or is the same everywhere.
[[nodiscard]] bool takes_blocks_abreast(const Kernel& kernel, const Domain& domain,
                                        const Stage& stage);

/// Some blocks of few rows that lie side by side, brought side by side themselves.
///
/// Example: the sums of the columns of x[500000, 3]. A row is one of the three columns, and a block
/// 16 elements of each: little work for a call of a stage, too narrow for vectors. 64 blocks are
/// copied to memory that stays in the first-level cache, where element i of all of them is 192
/// values next to each other, and are as many rows to the stage.
class BlocksAbreast {
 public:
  /// With memory for `most` of blocks_abreast().
  BlocksAbreast(const Kernel& kernel, const Domain& domain, int64_t most, Scratch& scratch);

  /// Brings in what such a stage reads of `count` blocks (BlockOrder::reversed), of which the first
  /// is at `pointers`; these and `steps` are then those of what is visited.
  [[nodiscard]] Piece load(const Stage& stage, int64_t count, Pointers& pointers,
                           TileSteps& steps) const;

 private:
  void copy(std::size_t operand, int64_t count, const char* from) const;

  const Kernel& kernel_;
  const Domain& domain_;
  int64_t rows_, length_, most_;
  /// Of block b among most_: its bits in reverse. Among fewer, without the last bits.
  std::array<int64_t, most_blocks_at_once> places_ = {};
  char** memory_;  ///< by operand, or null
};

}  // namespace nitinol::host
