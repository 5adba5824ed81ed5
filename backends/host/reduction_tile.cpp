#include "backends/host/reduction_tile.h"

#include "backends/host/loop_nest.h"
#include "core/reduction.h"

#include <algorithm>

namespace nitinol::host {
namespace {

/// Rows at once: their accumulators (sequential), or what several stages read of them (lanes), stay
/// in the first-level cache.
constexpr int64_t tile_rows = 1024, tile_rows_of_lanes = 64, tile_bytes_of_lanes = 32768;
/// The same where each row has its lanes (across): those of a tile stay in the second-level cache,
/// and so does what several stages read.
constexpr int64_t tile_rows_across = 128, fewest_rows_across = 64, tile_bytes_across = 524288;

}  // namespace

bool is_turned(const Kernel& kernel, const Domain& domain, std::size_t operand) {
  const Operand& of = kernel.operands[operand];
  if (kernel.order != Order::sequential || of.role != Role::input || of.inner != StrideClass::one)
    return false;
  return domain.steps[static_cast<std::size_t>(domain.rank - 1)][operand] !=
         static_cast<int64_t>(size_of(of.dtype));
}

int64_t rows_of_tile(const Kernel& kernel, const Launch& launch, const Domain& domain) {
  const bool is_across = kernel.order == Order::across;
  const int64_t last =
      domain.rank == 0 ? 1 : domain.sizes[static_cast<std::size_t>(domain.rank - 1)];
  if (kernel.order == Order::sequential) {
    int64_t bytes = 0;  // of turned operands, for a row of the tile
    for (std::size_t k = 0; k < domain.operands; ++k) {
      if (is_turned(kernel, domain, k))
        bytes += block_of(kernel) * static_cast<int64_t>(size_of(kernel.operands[k].dtype));
    }
    const int64_t fitting =
        bytes == 0 ? tile_rows
                   : std::clamp(tile_bytes_of_lanes / bytes, fewest_rows_across, tile_rows);
    return std::min(last, fitting);
  }
  if (domain.rank == 0 || (!is_across && domain.reduced_size > reduction_order::lanes_block))
    return 1;
  const auto passes = std::ranges::count(kernel.stages, Stage::Level::element, &Stage::level);
  const Steps& row_steps = domain.steps[static_cast<std::size_t>(domain.rank - 1)];
  int64_t bytes = 1, common_bytes = 0;  // that are read again: of a row, and of all rows of a tile
  for (std::size_t k = 0; passes > 1 && k < domain.operands; ++k) {
    if (domain.reduced_steps[k] == 0 || kernel.operands[k].role == Role::output) continue;
    (row_steps[k] == 0 ? common_bytes : bytes) +=
        static_cast<int64_t>(size_of(kernel.operands[k].dtype)) * domain.reduced_size;
  }
  const int64_t tile_bytes = is_across ? tile_bytes_across : tile_bytes_of_lanes;
  const int64_t fewest = is_across ? fewest_rows_across : 1;
  const int64_t most = is_across ? tile_rows_across : tile_rows_of_lanes;
  const int64_t fitting = std::clamp((tile_bytes - common_bytes) / bytes, fewest, most);
  const int64_t rows = domain.count(0, domain.rank);
  const bool is_shared = launch.threads > 1 && rows * domain.reduced_size >= 2 * grain_of(kernel);
  const int64_t fair = std::max(rows / (4 * int64_t{launch.threads}), fewest);
  return std::min({fitting, is_shared ? fair : rows, last});
}

void find_steps(const Kernel& kernel, const Domain& domain, int64_t width, int64_t block,
                TileSteps& steps) {
  const int lanes = lanes_in_common(kernel.reductions).value_or(0);
  const Steps& rows = domain.rank == 0 ? domain.reduced_steps
                                       : domain.steps[static_cast<std::size_t>(domain.rank - 1)];
  for (std::size_t i = 0; i < 2 * domain.operands; ++i) {
    // What is kept across lies as a tile's rows are visited; and so it can lie in an output.
    const std::size_t k = i % domain.operands;
    const Operand& operand = kernel.operands[k];
    const bool is_kept = kernel.order == Order::across && operand.role == Role::scratch;
    if (is_kept != (i >= domain.operands)) continue;
    const auto size = static_cast<int64_t>(size_of(operand.dtype));
    const auto alias = static_cast<std::size_t>(operand.alias);
    steps.rows[k] = !is_kept ? rows[k] : operand.alias < 0 ? size : steps.rows[alias];
    steps.reduced[k] = !is_kept            ? domain.reduced_steps[k]
                       : operand.alias < 0 ? size * width
                                           : steps.reduced[alias];
    steps.blocks[k] = steps.reduced[k] * block;
    steps.lanes[k] = steps.reduced[k] * lanes;
  }
}

}  // namespace nitinol::host
