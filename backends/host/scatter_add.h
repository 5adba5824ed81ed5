// Rows summed by index, for host backends: the opposite of take.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out[r, j...] = the sum of values[i..., j...] over all i with indices[i...] == r, in row-major
/// order of i whatever the thread count, in the compute type of the dtype, rounded once; 0 where
/// there are none. Negative indices count from the end. One out of range is reported in the
/// launch's status, or thrown as Error(value) if there is none; the output is then incomplete.
void scatter_add(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
