// Rows joined with others where indices say, for host backends.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out = x, of which each row has been joined with the rows of values whose index says so, in
/// row-major order of the indices: by call.combine (16-bit numbers are rounded each time), or
/// replaced by the last one. Indices and errors as scatter_add's.
void scatter(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
