// Postponing: moving work from the group where greedy grouping put it to the later one that needs
// it.
#pragma once

#include "core/function_ref.h"
#include "fusion/fuse.h"

namespace nitinol::fusion {

/// Moves what only one later group reads to that group, where that leaves less in memory between
/// the two. `is_valid` says whether a loop nest can express a group.
void postpone(const Graph& graph, Fusion& fusion, FunctionRef<bool(const Group&)> is_valid);

}  // namespace nitinol::fusion
