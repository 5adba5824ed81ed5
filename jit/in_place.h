// In place: which new values of Variables are computed where the old ones lie.
#pragma once

#include "core/graph.h"
#include "core/kernel.h"
#include "jit/plan_impl.h"

#include <optional>
#include <span>
#include <vector>

namespace nitinol::jit {

/// Decides for each of the plan's updates whether it may be computed in its Variable's buffer.
/// `bases` is bases_of(graph); `kernels` has the kernel of each step that has one, and is told what
/// may be the same memory.
void plan_in_place(const Graph& graph, std::span<const Value> bases, PlanImpl& plan,
                   std::vector<std::optional<Kernel>>& kernels);

}  // namespace nitinol::jit
