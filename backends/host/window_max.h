// The largest elements of windows on images.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// LibraryCall::window_max and window_max_input for numeric dtypes and any strides. Of equal
/// elements the first in row-major order counts, of NaN the last. Sums are in the order of windows,
/// in f32 for f16 and bf16; bits do not depend on the thread count.
void window_max(const LibraryCall& call, const Launch& launch);
void window_max_input(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
