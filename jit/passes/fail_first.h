// What may fail comes before what acts on the outside.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// If `graph` has ops that are ordered (Op::effect): moves those that may fail, with what they are
/// computed from, before the first of them. What may fail must not depend on what is ordered.
[[nodiscard]] Graph fail_first(Graph graph);

}  // namespace nitinol::jit
