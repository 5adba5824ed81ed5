// The text of scans: running sums, products, extremes.
#pragma once

#include "core/library.h"

#include <string>

namespace nitinol::cuda {

struct RoutineText;

/// What a scan or a scatter makes of values a and b, as core/joins.h does: an expression.
[[nodiscard]] std::string join_of_values(const LibraryCall& call);

/// Adds the text of a scan to one that has the words of routine_text.cpp.
void write_scan(const LibraryCall& call, RoutineText& made);

}  // namespace nitinol::cuda
