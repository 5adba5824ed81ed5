// The text of what has to do with order: sorting, searching and masks.
#pragma once

#include "core/library.h"

namespace nitinol::cuda {

struct RoutineText;

/// Adds the text of sort, argsort, search, compress or positions to one that has the words of
/// routine_text.cpp.
void write_order(const LibraryCall& call, RoutineText& made);

}  // namespace nitinol::cuda
