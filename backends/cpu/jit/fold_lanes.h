// Code that joins the lanes of a reduction into one value.
#pragma once

#include "backends/cpu/jit/instruction.h"
#include "backends/cpu/jit/streams.h"
#include "core/reduction.h"

namespace nitinol::cpu {

/// The accumulators of a reduction in memory.
struct Lanes {
  const Stream& values;
  const Stream* positions;  ///< of arg_*, else null
};

/// A vector of lanes or one element: what is left of them.
struct Folded {
  llvm::Value* value;
  llvm::Value* position;  ///< of arg_*, else null
};

/// Joins lane l with lane l + n/2, halving n until one is left. `size`: elements that joined lanes;
/// vectors of lanes beyond are neutral and left out.
[[nodiscard]] Folded fold_lanes(const EmitContext& context, StreamEmitter& streams,
                                const Reduction& reduction, const Lanes& lanes, llvm::Value* size);

/// Lanes of the present run, and the address of an array of as many: of the runs before it.
struct RunLanes {
  const Stream& own;
  llvm::Value* runs;
};
/// A run of a block that has ended; floating sums and products have them.
struct Run {
  Reduction reduction;
  llvm::Value *is_first, *is_last;  ///< of its block
};
/// Its lanes join what the runs before it came to, and are kept if more follow.
void join_runs(const EmitContext& context, StreamEmitter& streams, const RunLanes& lanes,
               const Run& run);

}  // namespace nitinol::cpu
