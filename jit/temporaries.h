// Temporaries: values that live in the arena of a call.
#pragma once

#include "jit/plan_draft.h"

#include <cstddef>

namespace nitinol::jit {

/// Bytes of a tensor without gaps.
[[nodiscard]] std::size_t bytes_of(const Spec& spec);

/// Puts each value that steps of the plan touch, and that has no place yet, into the arena, from
/// the launch that first touches it up to the last that does.
void place_temporaries(PlanDraft& draft);

}  // namespace nitinol::jit
