// Sums by index along an axis, for host backends.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out[i..., r, k...] = the sum of values[i..., j, k...] over all j with indices[i..., j, k...] ==
/// r, in the order of j whatever the thread count, in the compute type of the dtype, rounded once;
/// 0 where there are none. Negative indices count from the end. One out of range is reported in the
/// launch's status, or thrown as Error(value) if there is none; the output is then incomplete.
void scatter_add_along(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
