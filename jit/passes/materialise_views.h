// Copies where views need them.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// Puts a copy before each view that strides cannot express (a reshape of a transposed tensor), as
/// eager does when it comes to one. After it all views are maps of strides, which fusion and the
/// memory plan rely on: it cannot be switched off.
[[nodiscard]] Graph materialise_views(Graph graph);

}  // namespace nitinol::jit
