// Code that joins the lanes of a reduction into one value.
#pragma once

#include "backends/cpu/jit/instruction.h"
#include "backends/cpu/jit/streams.h"
#include "core/kernel.h"

namespace nitinol::cpu {

/// The accumulators of a reduction in memory.
struct Lanes {
  const Stream& values;
  const Stream* positions;  ///< of arg_*, else null
};

/// Joins lane l with lane l + n/2, halving n until the value is in lane 0; the other lanes are of
/// no use then.
void fold_lanes(const EmitContext& context, StreamEmitter& streams, const Reduction& reduction,
                const Lanes& lanes);

}  // namespace nitinol::cpu
