// The text of a random order of numbers.
#pragma once

#include "core/library.h"

namespace nitinol::cuda {

struct RoutineText;

/// Adds the text of a permutation to one that has the words of routine_text.cpp.
void write_permutation(const LibraryCall& call, RoutineText& made);

}  // namespace nitinol::cuda
