// A cast that notices what it cannot hold: what a run-time number becomes beside narrower integers.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out = in, an int64 operand as one of an integer dtype and the same shape. A number that the
/// dtype does not hold is reported in the launch's status, or thrown as Error(value) if there is
/// none.
void check_fits(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
