// Horizontal fusion: which steps of a Plan are launched together, side by side.
#pragma once

#include "core/graph.h"
#include "core/kernel.h"
#include "jit/plan_draft.h"

#include <cstddef>
#include <span>
#include <vector>

namespace nitinol::jit {

/// What a step does to memory, by the values that lie there.
struct StepEffects {
  std::vector<Value> reads, writes;
  const Kernel* kernel = nullptr;  ///< null: runs by itself
  bool can_fail = false;
  bool overwrites = false;  ///< a Variable's buffer: only after all that can fail
};

/// Numbers of steps in the order in which they are to run, those of one list in one launch: they
/// are of one kernel, and none depends on another one. `values` is the number of values.
[[nodiscard]] std::vector<std::vector<std::size_t>> join_steps(std::span<const StepEffects> steps,
                                                               std::size_t values);

/// Reorders the steps so that those to be launched together follow each other.
void join_launches(PlanDraft& draft);

}  // namespace nitinol::jit
