// A copy that notices zeros: what integer division does first with its divisor.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out = in, two integer (or bool) operands of one shape. A zero is reported in the launch's
/// status, or thrown as Error(value) if there is none.
void check_nonzero(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
