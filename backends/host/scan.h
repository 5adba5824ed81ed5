// Running sums along an axis, and products and extremes, for host backends.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out[i..., j, k...] = what x[i..., 0 to j, k...] become when they are joined (call.combine), in
/// runs (reduction_order::scan_run), in the compute type of the dtype: f16 and bf16 in f32, each
/// result rounded. Integers wrap. Bits depend neither on strides nor on the thread count.
void scan(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
