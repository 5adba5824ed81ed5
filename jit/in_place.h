// In place: which new values of Variables are computed where the old ones lie.
#pragma once

#include "jit/plan_draft.h"

namespace nitinol::jit {

/// Decides for each of the plan's updates whether it may be computed in its Variable's buffer, and
/// tells kernels what may be the same memory.
void plan_in_place(PlanDraft& draft);

}  // namespace nitinol::jit
