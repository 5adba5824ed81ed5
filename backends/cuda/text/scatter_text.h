// The text of values that arrive where indices say.
#pragma once

#include "core/library.h"

namespace nitinol::cuda {

struct RoutineText;

/// Adds the text of scatter_add, scatter_add_along or scatter to one that has the words of
/// routine_text.cpp.
void write_scatter(const LibraryCall& call, RoutineText& made);

}  // namespace nitinol::cuda
