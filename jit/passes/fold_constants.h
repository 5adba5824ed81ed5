// Constant folding.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// Replaces nodes whose operands are small constants by their results, which eager computes. What
/// is folded follows from the graph's shape alone, never from the values or from sizes that
/// arguments bring: kernels must keep their structure.
[[nodiscard]] Graph fold_constants(Graph graph);

}  // namespace nitinol::jit
