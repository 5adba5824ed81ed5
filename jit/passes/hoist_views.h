// Views of computed values become computations on views.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// Where only parts of an elementwise result are read, and no element more than once, each part is
/// computed where it is read: slice(a + b) becomes slice(a) + slice(b).
[[nodiscard]] Graph hoist_views(Graph graph);

}  // namespace nitinol::jit
