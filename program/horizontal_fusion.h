// Horizontal fusion: which steps of a Program are launched together, side by side.
#pragma once

#include "core/graph.h"
#include "core/kernel.h"
#include "program/draft.h"

#include <cstddef>
#include <span>
#include <vector>

namespace nitinol::program {

/// A step, and the kernel by which it may be launched with others; null: it runs by itself.
struct Joinable {
  const ProgramStep* step = nullptr;
  const Kernel* kernel = nullptr;
};

/// Numbers of steps in the order in which they are to run, those of one list in one launch: they
/// are of one kernel, and none depends on another one. `values` is the number of values.
[[nodiscard]] std::vector<std::vector<std::size_t>> join_steps(std::span<const Joinable> steps,
                                                               std::size_t values);

/// Reorders the steps so that those to be launched together follow each other.
void join_launches(ProgramDraft& draft);

}  // namespace nitinol::program
