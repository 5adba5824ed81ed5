// Results made of nothing.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// Replaces what reduces, or multiplies matrices of, no elements by the number that eager fills its
/// result with: there is nothing to compute it from.
[[nodiscard]] Graph fill_empty(Graph graph);

}  // namespace nitinol::jit
