#include "backends/cuda/text/schedule.h"

#include "backends/cuda/text/arguments.h"
#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/lanes.h"
#include "backends/cuda/text/launch_loops.h"
#include "backends/cuda/text/shapes.h"
#include "core/error.h"
#include "core/kernel.h"
#include "core/round_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

namespace nitinol::cuda {
namespace {

/// Bytes of a vector load.
constexpr std::size_t vector_bytes = 16;
/// From how many instructions on a thread takes one element of a piece, or reads elements again
/// instead of keeping them: text that is written out several times costs NVRTC as often.
constexpr std::size_t long_program = 150;
/// Elements that a thread keeps in registers, in all.
constexpr int64_t most_kept = 64;
/// Fewer blocks of threads than this leave most of a GPU idle: twice an H100's multiprocessors.
constexpr int64_t few_blocks = 264;
/// Indices of 32 bits stay below, with room for what threads add beyond the end.
constexpr int64_t most_narrow = std::numeric_limits<int32_t>::max() - 65536;

std::size_t instructions_of(const Kernel& kernel) {
  std::size_t count = 0;
  for (const Stage& stage : kernel.stages) count += stage.program.instrs.size();
  return count;
}

bool is_memory(const Operand& operand) {
  return operand.role != Role::scalar && operand.role != Role::position;
}

/// Whether operand k's pieces of `width` elements along the last loop begin at multiples of their
/// size.
bool is_aligned(const Kernel& kernel, const Launch& launch, const LaunchLoops& loops, int width) {
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
    const Operand& operand = kernel.operands[k];
    if (!is_memory(operand) || operand.inner != StrideClass::one) continue;
    const auto bytes = static_cast<std::size_t>(width) * size_of(operand.dtype);
    if (std::bit_cast<uintptr_t>(launch.buffers[k]) % bytes != 0) return false;
    for (int loop = 0; loop + 1 < loops.rank(); ++loop) {
      if (loops.sizes[static_cast<std::size_t>(loop)] > 1 && loops.stride(k, loop) % width != 0)
        return false;
    }
  }
  return true;
}

bool is_wide(const Kernel& kernel, const LaunchLoops& loops) {
  if (std::max(loops.rows(), loops.points()) > most_narrow) return true;
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
    if (!is_memory(kernel.operands[k])) continue;
    int64_t reach = 0;
    for (int loop = 0; loop < loops.rank(); ++loop)
      reach += (loops.sizes[static_cast<std::size_t>(loop)] - 1) * std::abs(loops.stride(k, loop));
    if (reach > most_narrow) return true;
  }
  return false;
}

void choose_points(const Kernel& kernel, const Launch& launch, const LaunchLoops& loops,
                   Schedule& schedule) {
  std::size_t largest = 0;
  for (const Operand& operand : kernel.operands) {
    if (is_memory(operand) && operand.inner == StrideClass::one)
      largest = std::max(largest, size_of(operand.dtype));
  }
  if (largest == 0 || instructions_of(kernel) > long_program) return;
  int width = static_cast<int>(std::min<std::size_t>(vector_bytes / largest, 8));
  while (width > 1 && (loops.length() < width || !is_aligned(kernel, launch, loops, width)))
    width /= 2;
  schedule.width = static_cast<uint8_t>(width);
  schedule.is_aligned = width > 1;
  schedule.is_even = width > 1 && loops.length() % width == 0;
}

/// Elements that each stage reads of a row, all operands together.
int64_t kept_operands(const Kernel& kernel) {
  return std::ranges::count_if(kernel.operands, [](const Operand& operand) {
    return operand.role == Role::scratch ||
           (operand.role == Role::input && operand.inner != StrideClass::zero);
  });
}

void choose_lanes(const Kernel& kernel, const Launch& launch, const LaunchLoops& loops,
                  Schedule& schedule) {
  const int64_t length = loops.length();
  const bool has_long = std::ranges::any_of(
      kernel.reductions, [](const Reduction& r) { return lanes_of(r.type) != full_chunk; });
  const int width = has_long ? 1 : 2;
  schedule.width = static_cast<uint8_t>(width);
  schedule.is_aligned = width > 1 && is_aligned(kernel, launch, loops, width);
  schedule.is_even = schedule.is_aligned && length % width == 0;
  schedule.threads = warp_threads;
  if (length <= reduction_order::lanes_run) {
    schedule.shape = Schedule::Shape::rows;
    const auto span = std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(length, 1)));
    schedule.threads = static_cast<uint8_t>(
        std::clamp<uint64_t>(span / static_cast<uint64_t>(width), 1, warp_threads));
  } else {
    schedule.shape = Schedule::Shape::blocks;
    schedule.is_split = loops.rows() < few_blocks && length > round_elements;
  }
  const int64_t chunk =
      schedule.threads == warp_threads ? full_chunk : int64_t{schedule.threads} * width;
  const int64_t all = schedule.shape == Schedule::Shape::rows ? chunk : round_elements;
  schedule.is_whole = length % all == 0;
  const bool is_one_round = length > 0 && length <= round_elements;
  const int64_t chunks = ceil_div(std::min(length, reduction_order::lanes_run), full_chunk);
  const int64_t per_thread =
      chunks * full_chunk / warp_threads * std::max<int64_t>(kept_operands(kernel), 1);
  if (!is_one_round || per_thread > most_kept || instructions_of(kernel) > long_program) return;
  schedule.chunks = static_cast<uint8_t>(chunks);
}

void choose_columns(const Kernel& kernel, const LaunchLoops& loops, Schedule& schedule) {
  schedule.shape = Schedule::Shape::columns;
  const int64_t rows = loops.rows(), length = loops.length(), block = block_of(kernel);
  const int64_t blocks = ceil_div(length, block);
  const bool is_alone =
      blocks == 1 || (blocks < most_own_blocks && rows >= few_blocks * block_threads);
  schedule.threads = is_alone ? 1 : shared_column_threads;
  const int64_t columns = block_threads / schedule.threads;
  schedule.is_split =
      !is_alone && ceil_div(rows, columns) < few_blocks && blocks > schedule.threads;
}

/// As few of a short list as suffice, so that few rows more do not mean another text.
uint8_t levels_of(const Grid& grid, const Schedule& schedule) {
  int64_t most = grid.rounds;
  if (schedule.is_split) {  // at the end, each thread takes up a power of two of parts by a stack
    const bool is_blocks = schedule.shape == Schedule::Shape::blocks;
    const int64_t threads = is_blocks ? block_threads : schedule.threads;
    most = std::max(most, 2 * ceil_div(grid.groups, threads));
  }
  const auto rounds = static_cast<uint64_t>(most);
  for (const uint8_t levels : {uint8_t{1}, uint8_t{5}, uint8_t{10}}) {
    if (rounds >> levels == 0) return levels;
  }
  return uint8_t{20};
}

}  // namespace

Schedule schedule_of(const Kernel& kernel, const Launch& launch) {
  const LaunchLoops loops(kernel, launch);
  Schedule schedule;
  schedule.rank = static_cast<uint8_t>(loops.rank());
  schedule.is_wide = is_wide(kernel, loops);
  switch (kernel.order) {
    case Order::none:
      choose_points(kernel, launch, loops, schedule);
      break;
    case Order::turned:
      NITINOL_ASSERT(kernel.order != Order::turned, "limits() ask for no turned rows");
      break;
    case Order::lanes:
      choose_lanes(kernel, launch, loops, schedule);
      break;
    case Order::sequential:
      choose_columns(kernel, loops, schedule);
      break;
  }
  schedule.levels = levels_of(grid_of(kernel, schedule, loops), schedule);
  return schedule;
}

std::size_t most_parts(const Kernel& kernel, const Schedule& schedule, std::size_t most_bytes) {
  if (schedule.shape != Schedule::Shape::points) return 1;
  const std::vector<Field> fields = fields_of(kernel, schedule);
  for (std::size_t parts = 224; parts > 64; parts -= 32) {
    if (argument_bytes(fields, schedule, parts) <= most_bytes) return parts;
  }
  std::size_t parts = 64;
  while (parts > 1 && argument_bytes(fields, schedule, parts) > most_bytes) parts /= 2;
  return parts;
}

std::size_t parts_for(std::size_t launches, std::size_t most) {
  return std::min(launches <= 64 ? std::bit_ceil(launches) : round_up(launches, std::size_t{32}),
                  most);
}

std::string to_string(const Schedule& schedule) {
  constexpr const char* names[] = {"points", "rows", "blocks", "columns"};
  std::string text =
      fmt::format("{} in {} loops, {} threads, width {}, {} chunks kept, {} levels",
                  names[static_cast<int>(schedule.shape)], schedule.rank, schedule.threads,
                  schedule.width, schedule.chunks, schedule.levels);
  if (schedule.is_aligned) text += ", aligned";
  if (schedule.is_even) text += ", even";
  if (schedule.is_whole) text += ", whole";
  if (schedule.is_wide) text += ", wide";
  if (schedule.is_split) text += ", split";
  if (schedule.parts > 1) text += fmt::format(", {} parts", schedule.parts);
  return text;
}

}  // namespace nitinol::cuda
