// Dead code.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// Drops what no output needs. Inputs stay, since arguments are given by position, and so do ops
/// with checks (with what they read): eager would have thrown there.
[[nodiscard]] Graph remove_dead(Graph graph);

}  // namespace nitinol::jit
