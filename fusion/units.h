// Units: what of a graph becomes one step each, in the order in which they run.
#pragma once

#include "core/graph.h"
#include "fusion/fuse.h"

#include <vector>

namespace nitinol::fusion {

/// A group, or a node outside groups.
struct Unit {
  int group = -1;
  Value node = 0;
};

/// The units of the graph, each after those whose results it reads, else as they were recorded.
[[nodiscard]] std::vector<Unit> units_in_order(const Graph& graph, const Fusion& fusion);

}  // namespace nitinol::fusion
