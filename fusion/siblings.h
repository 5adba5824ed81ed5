// Siblings: groups that read the same, and none of them another.
#pragma once

#include "core/graph.h"
#include "fusion/fuse.h"
#include "fusion/group_order.h"
#include "fusion/nest_rules.h"

#include <vector>

namespace nitinol::fusion {

/// Makes one group of elementwise ones of one shape that read the same, so that it comes from
/// memory once, where that makes nothing wait and takes no more memory. `contents` are those of the
/// groups, and stay so.
void unite_siblings(const Graph& graph, Fusion& fusion, std::vector<Contents>& contents,
                    GroupOrder& order);

}  // namespace nitinol::fusion
