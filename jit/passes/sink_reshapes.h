// Elementwise operations on what was copied to be reshaped.
#pragma once

#include "core/graph.h"

namespace nitinol::jit {

/// Elementwise operations on the reshape of a copy, and on numbers, are computed in the copy's
/// shape, where one kernel holds both: tanh(reshape(copy(v))) becomes reshape(tanh(copy(v))).
[[nodiscard]] Graph sink_reshapes(Graph graph);

}  // namespace nitinol::jit
