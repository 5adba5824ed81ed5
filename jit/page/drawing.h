// Drawings of a Plan, as SVG.
#pragma once

#include "jit/plan.h"

#include <span>
#include <string>
#include <string_view>

namespace nitinol::jit {

/// The steps, what they read that was there before and what they give, with bytes on the lines
/// between them. A step links to the element `<id><number>`, numbers from 1 on.
[[nodiscard]] std::string drawn_graph(const PlanReport& plan, std::string_view id);

/// The memory of temporaries over the steps; empty if there are none.
[[nodiscard]] std::string drawn_memory(const PlanReport& plan);

/// Two bars: the time that a step needs at least for its bytes and for its operations, where
/// `longest` is all of the width.
[[nodiscard]] std::string drawn_bound(const Bound& bound, double longest);

}  // namespace nitinol::jit
