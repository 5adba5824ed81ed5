// Elementwise operations on what is joined of pieces.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// What elementwise operations make of a concat, if it is to lie in memory anyway, is made piece by
/// piece and joined at last: relu(concat(a, b)) becomes concat(relu(a), relu(b)), and the first
/// concat is nowhere.
[[nodiscard]] Graph sink_concats(Graph graph);

}  // namespace nitinol::jit
