// Places among sorted elements, for host backends.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out[i...] = how many elements of the sorted line are less than x[i...], or (is_right) not
/// greater; ordered as sort() orders. What it gives for a line that is not sorted is the same on
/// all devices: the line is halved, the lower part being the smaller one.
void search(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
