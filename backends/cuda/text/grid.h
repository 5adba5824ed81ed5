// Grid: how many blocks of threads a launch takes.
#pragma once

#include "backends/cuda/text/launch_loops.h"
#include "backends/cuda/text/schedule.h"

#include <cstdint>

namespace nitinol::cuda {

inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// Most parts into which a row is split; a power of two.
inline constexpr int64_t most_groups = 1024;

struct Grid {
  int64_t tiles;           ///< blocks of threads, or groups of them, that take rows
  int64_t rounds = 1;      ///< in which a block of threads goes through its part of a row
  int64_t groups = 1;      ///< parts of a row
  int64_t group_size = 1;  ///< rounds in a part, a power of two; 1 if rows are not split
};

/// The grid of a launch that is not empty. `schedule.levels` is not asked for.
[[nodiscard]] Grid grid_of(const Kernel& kernel, const Schedule& schedule,
                           const LaunchLoops& loops);

}  // namespace nitinol::cuda
