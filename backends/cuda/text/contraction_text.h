// The text of contractions: products of matrices, convolutions and their gradients.
#pragma once

#include "core/library.h"

namespace nitinol::cuda {

struct RoutineText;

/// Adds to a text that has the words of routine_text.cpp. Each call is a product of two matrices
/// that may lie in memory as no matrix does (an implicit matrix product: no image is unfolded): a
/// block of threads makes a tile of the result from tiles in shared memory. If there are few tiles,
/// the sums are cut into parts that a second function adds, in their order; so no two runs differ.
void write_contraction(const LibraryCall& call, RoutineText& made);

}  // namespace nitinol::cuda
