// Convolutions as plain loops.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// LibraryCall::conv2d, conv2d_input and conv2d_weight for numeric dtypes and any strides: sums in
/// the order of rows, columns, channels; in f32 for f16 and bf16, else in the dtype. Bits do not
/// depend on the thread count.
void convolve(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
