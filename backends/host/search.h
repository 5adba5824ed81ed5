// Places among sorted elements, for host backends.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out[i...] = how many elements of the sorted line are less than x[i...], or (is_right) not
/// greater; ordered as sort() orders.
void search(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
