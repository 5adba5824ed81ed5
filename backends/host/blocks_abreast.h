// BlocksAbreast: some blocks of few rows that lie side by side, brought side by side themselves.
//
// Example: the sums of the columns of x[500000, 3]. A row is one of the three columns, and a block
// 16 elements of each: little work for a call of a stage, too narrow for vectors. 64 blocks are
// copied to memory that stays in the first-level cache, where element i of all of them is 192
// values next to each other, and are as many rows to the stage.
#pragma once

#include "backends/host/block_stack.h"
#include "backends/host/domain.h"
#include "backends/host/reduction_tile.h"
#include "backends/host/scratch.h"

#include <array>
#include <cstdint>

namespace nitinol {
struct Stage;
}  // namespace nitinol

namespace nitinol::host {

/// Blocks at a time, a power of two: 1 if there are too many rows, or too few blocks.
[[nodiscard]] int64_t blocks_abreast(const Kernel& kernel, const Domain& domain);

/// Whether a stage may see them: what it reads lies so, or is the same everywhere.
[[nodiscard]] bool takes_blocks_abreast(const Kernel& kernel, const Domain& domain,
                                        const Stage& stage);

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
