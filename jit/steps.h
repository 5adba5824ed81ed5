// Steps: what of a graph becomes which launch or call.
#pragma once

#include "fusion/units.h"
#include "jit/plan_draft.h"

#include <memory>

namespace nitinol::jit {

/// Whether the node, which is in no group, runs as eager runs it.
[[nodiscard]] bool runs_eagerly(const Graph& graph, const Node& node);

/// Appends the steps of a group or node.
void add_steps(PlanDraft& draft, const fusion::Unit& unit);

/// The executable for a step; what it cost is noted in `report`.
[[nodiscard]] std::shared_ptr<const Executable> prepare(PlanDraft& draft, const Step& step,
                                                        StepReport& report);

}  // namespace nitinol::jit
