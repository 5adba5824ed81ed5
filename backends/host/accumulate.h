// Accumulate: native loops that take contiguous values into the accumulators of a reduction.
#pragma once

#include "core/isa.h"
#include "core/reduction.h"

#include <cstdint>

namespace nitinol::host {

/// Contiguous rows of values, `row_step` bytes apart; the first is at `position` along the reduced
/// dimension, the next at `position` + 1.
struct RowBlock {
  const void* values;
  int64_t row_step;
  int64_t rows, columns;
  int64_t position;
};

/// A contiguous piece of a block, whose values join lanes: all of the block, or a run of it
/// (reduction_order::lanes_run).
struct LanePiece {
  const void* values;
  int64_t n;
  int64_t position;
  bool is_first;  ///< of its block: the lanes start from the neutral element
  bool is_last;   ///< the lanes are folded: lane 0 gets the block's value, and the others nothing
};

/// Loops for one reduction and instruction set. Positions matter to arg_* alone.
struct Accumulate {
  /// Value i joins lane i % lanes_of(type). arg_*: all join lane 0; value i is at `position` + i.
  void (*lanes)(const LanePiece& piece, void* lanes, int64_t* lane_positions) = nullptr;
  /// Value j of each row joins accumulator j, row after row.
  void (*rows)(const RowBlock& block, void* accumulators, int64_t* positions) = nullptr;
  /// Row l of values joins row l + rows/2, halving `rows` (a power of two) until the result is row
  /// 0; rows follow each other. Not for arg_*.
  void (*fold)(void* values, int64_t rows, int64_t columns) = nullptr;
};

/// Lane l of each row joins lane l + half, as those of Combiner::fold, all rows at once: lanes
/// follow each other, each with a value for each row, and lane 0 gets the results. Those beyond the
/// last would be neutral. Not for arg_*.
void fold_lanes_of_rows(const Accumulate& accumulate, std::size_t value_bytes, void* lanes,
                        int64_t count, int64_t rows);

/// Loops for `isa`, which the processor must have. Throws Error(internal) for a combine and a type
/// that mean nothing together.
[[nodiscard]] Accumulate accumulate_of(const Reduction& reduction, Isa isa);

}  // namespace nitinol::host
