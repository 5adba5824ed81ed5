// Identities that keep every bit.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// Reads past nodes that give back what they get: views that compose into nothing (a double
/// transpose), copies, casts to the same dtype or there and back, double negation, where(c, a, a).
/// Rules look at view maps and scalar instructions, never at names, and none of them changes a bit
/// (README). Leaves nodes behind that nothing uses any more.
[[nodiscard]] Graph simplify(Graph graph);

}  // namespace nitinol::jit
