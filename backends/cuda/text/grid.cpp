#include "backends/cuda/text/grid.h"

#include "backends/cuda/text/parts.h"
#include "backends/cuda/text/shapes.h"
#include "core/kernel.h"

#include <algorithm>
#include <bit>

namespace nitinol::cuda {
namespace {

/// Blocks of threads for which rows are split: four times as many as an H100 runs in turn.
constexpr int64_t wanted_blocks = 1056;

/// Elements of a row that a block of threads takes in a round.
int64_t round_of(const Kernel& kernel, const Schedule& schedule) {
  return schedule.shape == Schedule::Shape::blocks
             ? schedule.round_elements()
             : block_of(kernel) * teams_of(schedule).threads();
}

}  // namespace

Grid grid_of(const Kernel& kernel, const Schedule& schedule, const LaunchLoops& loops) {
  switch (schedule.shape) {
    case Schedule::Shape::points:
      return {ceil_div(loops.rows() * ceil_div(loops.length(), schedule.width), block_threads)};
    case Schedule::Shape::tiles: {
      const int64_t side = tile_side(kernel), lines = loops.sizes[schedule.across];
      return {loops.rows() / lines * ceil_div(lines, side) * ceil_div(loops.length(), side)};
    }
    case Schedule::Shape::rows:
      return {ceil_div(loops.rows(), block_threads / schedule.threads)};
    case Schedule::Shape::blocks:
    case Schedule::Shape::columns:
      break;
  }
  Grid grid = {ceil_div(loops.rows(), teams_of(schedule).columns),
               ceil_div(loops.length(), round_of(kernel, schedule))};
  if (!schedule.is_split) return grid;
  const int64_t groups = std::clamp<int64_t>(wanted_blocks / grid.tiles, 1, most_groups);
  grid.group_size =
      static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(ceil_div(grid.rounds, groups))));
  grid.groups = ceil_div(grid.rounds, grid.group_size);
  grid.rounds = grid.group_size;
  return grid;
}

}  // namespace nitinol::cuda
