// What a kernel is called in debuggers and profilers.
#pragma once

#include "core/graph.h"
#include "fusion/groups.h"

#include <string>

namespace nitinol::fusion {

/// The group's operations in their order, "add_mul_tanh": an identifier of at most 80 characters.
/// Of long groups it has the first operations and how many follow: "add_mul_and_38_more".
[[nodiscard]] std::string kernel_name(const Graph& graph, const Group& group);

}  // namespace nitinol::fusion
