// The text of scans: running sums, products, extremes, logarithms of sums.
#pragma once

#include "core/library.h"

#include <string>

namespace nitinol::cuda {

struct RoutineText;

/// The function `join_of` of a scan or a scatter: what becomes of values a and b (core/joins.h).
/// It names nothing but the words of the prelude.
[[nodiscard]] std::string join_of_values(const LibraryCall& call);

/// Adds the text of a scan to one that has the words of routine_text.cpp.
void write_scan(const LibraryCall& call, RoutineText& made);

}  // namespace nitinol::cuda
