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

/// The units of the graph, each after those whose results it reads, else as they were recorded; or
/// those that are ordered (Op::effect) as early as what they read lets them, if `ordered_early`:
/// what they wait for is on its way while others run.
[[nodiscard]] std::vector<Unit> units_in_order(const Graph& graph, const Fusion& fusion,
                                               bool ordered_early);

}  // namespace nitinol::fusion
