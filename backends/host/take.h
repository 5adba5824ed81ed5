// Rows of a table by index, for host backends.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out[i..., j...] = table[indices[i...], j...]. Negative indices count from the end. One out of
/// range is reported in the launch's status, or thrown as Error(value) if there is none; the output
/// is then incomplete.
void take_rows(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
