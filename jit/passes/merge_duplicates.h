// Common subexpressions.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// Computes each value once: nodes with the same op, operands and attributes become one, unless the
/// op has checks. Constants merge only if they are the same tensor, never because their values are
/// equal: see the README.
[[nodiscard]] Graph merge_duplicates(Graph graph);

}  // namespace nitinol::jit
