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
#include <optional>
#include <span>
#include <vector>

namespace nitinol::cuda {
namespace {

/// Bytes of a vector load.
constexpr std::size_t vector_bytes = 16;
/// From how many instructions on a thread takes one element of a piece, or reads elements again
/// instead of keeping them: text that is written out several times costs NVRTC as often.
constexpr std::size_t long_program = 150;
/// Registers of a thread for elements that it keeps; of a block of more than `many_warps`, whose
/// threads have 64 registers.
constexpr int64_t most_kept = 64, most_kept_of_many = 32;
constexpr int many_warps = 16;
/// Warps that take a row of more than one run, if its last one is cut: as few of a short list as
/// suffice for one round, so that few elements more do not mean another text. What several rounds
/// of the last, or of `usual_warps`, take is an aligned part of the tree.
constexpr int warp_counts[] = {2, 3, 4, 6, 8, 12, 16, 24, 32};
constexpr int usual_warps = block_threads / warp_threads;
/// Fewer blocks of threads than this leave most of a GPU idle: twice an H100's multiprocessors.
constexpr int64_t few_blocks = 264;
/// Squares (tiles) are for loops of some length, and for more than the caches of multiprocessors
/// mend.
constexpr int64_t least_side = 16, least_tiled = 16384, most_tile_bytes = 49152;
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

/// The loop along which operands lie that do not along the last one, if it pays to take squares of
/// both: neighbouring threads would read what is far apart.
std::optional<int> loop_across(const Kernel& kernel, const LaunchLoops& loops) {
  const auto read_across = [&](std::size_t k) {
    return kernel.operands[k].role == Role::input && kernel.operands[k].inner == StrideClass::any;
  };
  std::optional<int> across;
  int64_t bytes = 0;
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
    const Operand& operand = kernel.operands[k];
    if (operand.role == Role::output &&
        (operand.inner != StrideClass::one ||
         (operand.alias >= 0 && read_across(static_cast<std::size_t>(operand.alias)))))
      return {};
    if (!read_across(k)) continue;
    bytes += tile_bytes(kernel, k);
    for (int loop = loops.rank() - 2; loop >= 0 && !across; --loop) {
      if (loops.stride(k, loop) == 1 && loops.sizes[static_cast<std::size_t>(loop)] >= least_side)
        across = loop;
    }
    if (!across || loops.stride(k, *across) != 1) return {};
  }
  if (loops.length() < least_side || loops.points() < least_tiled || bytes > most_tile_bytes)
    return {};
  return across;
}

/// One for each result of a single point, if that takes long: an optimizer's numbers are powers of
/// its decays, and what waits for them is a launch of all its parameters.
uint8_t threads_of_point(const Kernel& kernel, const LaunchLoops& loops) {
  constexpr std::size_t most_results = block_threads / warp_threads, least_instructions = 64;
  if (loops.points() != 1 || kernel.stages.size() != 1) return 1;
  const Stage& stage = kernel.stages[0];
  const std::size_t results = stage.sinks.size();
  const bool stores_alone = std::ranges::all_of(
      stage.sinks, [](const Sink& sink) { return sink.kind == Sink::Kind::store; });
  const bool looks_up = std::ranges::any_of(  // where it may be stored meanwhile
      stage.program.instrs, [](const ScalarInstr& instr) { return instr.op == ScalarOp::load; });
  if (!stores_alone || looks_up || results > most_results ||
      stage.program.instrs.size() < least_instructions)
    return 1;
  return static_cast<uint8_t>(results);
}

void choose_points(const Kernel& kernel, const Launch& launch, const LaunchLoops& loops,
                   Schedule& schedule) {
  schedule.threads = threads_of_point(kernel, loops);
  if (schedule.threads > 1) return;
  if (const std::optional<int> across = loop_across(kernel, loops)) {
    schedule.shape = Schedule::Shape::tiles;
    schedule.across = static_cast<uint8_t>(*across);
    return;
  }
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

/// The element stages that use operand k.
std::vector<std::size_t> stages_of(const Kernel& kernel, std::size_t k) {
  const Source loaded = {Source::Kind::operand, static_cast<uint16_t>(k)};
  std::vector<std::size_t> stages;
  for (std::size_t s = 0; s < kernel.stages.size(); ++s) {
    const Stage& stage = kernel.stages[s];
    const bool stores = std::ranges::any_of(stage.sinks, [k](const Sink& sink) {
      return sink.kind == Sink::Kind::store && sink.index == k;
    });
    if (stage.level == Stage::Level::element &&
        (stores || std::ranges::count(stage.sources, loaded) > 0))
      stages.push_back(s);
  }
  return stages;
}

/// The operands of which each stage would read the elements again, unless they were kept in
/// registers. Not those that all rows have in common: they are in the nearest cache.
std::vector<std::size_t> worth_keeping(const Kernel& kernel, const LaunchLoops& loops) {
  std::vector<std::size_t> worth;
  for (std::size_t k = 0; k < std::min<std::size_t>(kernel.operands.size(), 64); ++k) {
    const Operand& operand = kernel.operands[k];
    bool moves = loops.rank() == 1;
    for (int loop = 0; loop + 1 < loops.rank(); ++loop) moves |= loops.stride(k, loop) != 0;
    if (operand.role == Role::scratch ||
        (operand.role == Role::input && operand.inner != StrideClass::zero && moves &&
         stages_of(kernel, k).size() > 1))
      worth.push_back(k);
  }
  return worth;
}

/// How many registers an element of all of them takes at a time: each from the first stage that
/// uses it to the last.
int64_t registers_at_once(const Kernel& kernel, std::span<const std::size_t> operands) {
  std::vector<int64_t> kept(kernel.stages.size());  // behind each stage
  for (const std::size_t k : operands) {
    const std::vector<std::size_t> stages = stages_of(kernel, k);
    const auto registers =
        static_cast<int64_t>(std::max<std::size_t>(1, size_of(kernel.operands[k].dtype) / 4));
    for (std::size_t s = stages.front(); s < stages.back(); ++s) kept[s] += registers;
  }
  return std::ranges::max(kept);
}

int warps_for(int64_t length) {
  const int64_t runs = length / reduction_order::lanes_run;
  if (length % reduction_order::lanes_run == 0 && runs <= std::end(warp_counts)[-1])
    return static_cast<int>(runs);  // then none is cut
  const auto* const found = std::ranges::find_if(
      warp_counts, [&](int warps) { return warps * reduction_order::lanes_run >= length; });
  return found != std::end(warp_counts) ? *found : *std::prev(found);
}

bool is_one_round(const Schedule& schedule, int64_t length) {
  return length > 0 &&
         (schedule.shape == Schedule::Shape::rows || length <= schedule.round_elements());
}

/// Has the only round of a row written out, with as many operands kept as there are registers for.
/// False if there are several rounds, or none can be kept.
bool keeps(const Kernel& kernel, const LaunchLoops& loops, Schedule& schedule) {
  const int64_t length = loops.length();
  if (!is_one_round(schedule, length) || instructions_of(kernel) > long_program) return false;
  const int64_t chunks = ceil_div(std::min(length, reduction_order::lanes_run), full_chunk);
  const int64_t elements = chunks * full_chunk / warp_threads;
  const int64_t most = schedule.warps > many_warps ? most_kept_of_many : most_kept;
  std::vector<std::size_t> kept = worth_keeping(kernel, loops);
  const bool has_some = !kept.empty();
  while (elements * registers_at_once(kernel, kept) > most) {
    kept.erase(std::ranges::min_element(
        kept, {}, [&](std::size_t k) { return stages_of(kernel, k).size(); }));
  }
  if (has_some && kept.empty()) return false;
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {  // there is no other place for scratch
    if (kernel.operands[k].role == Role::scratch && std::ranges::count(kept, k) == 0) return false;
  }
  for (const std::size_t k : kept) schedule.kept |= uint64_t{1} << k;
  schedule.chunks = static_cast<uint8_t>(chunks);
  return true;
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
    schedule.warps = static_cast<uint8_t>(warps_for(length));
  }
  if (!keeps(kernel, loops, schedule) && schedule.shape == Schedule::Shape::blocks) {
    // What is read again is still in the GPU's cache if few rows are on their way: those of as few
    // blocks of many threads.
    const bool is_read_again =
        !worth_keeping(kernel, loops).empty() && instructions_of(kernel) <= long_program;
    const uint8_t fewer = std::min<uint8_t>(schedule.warps, usual_warps);
    if (!is_read_again) schedule.warps = fewer;
    schedule.is_split = loops.rows() < few_blocks && !is_one_round(schedule, length);
    if (schedule.is_split) schedule.warps = fewer;
  }
  const int64_t chunk =
      schedule.threads == warp_threads ? full_chunk : int64_t{schedule.threads} * width;
  schedule.is_whole =
      length % (schedule.shape == Schedule::Shape::rows ? chunk : schedule.round_elements()) == 0;
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
    case Order::across:
      NITINOL_ASSERT(false, "limits() ask for no rows of vectors");
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
  constexpr const char* names[] = {"points", "tiles", "rows", "blocks", "columns"};
  std::string text =
      fmt::format("{} in {} loops, {} threads, width {}, {} chunks, {} kept, {} levels",
                  names[static_cast<int>(schedule.shape)], schedule.rank, schedule.threads,
                  schedule.width, schedule.chunks, std::popcount(schedule.kept), schedule.levels);
  if (schedule.warps != usual_warps) text += fmt::format(", {} warps", schedule.warps);
  if (schedule.is_aligned) text += ", aligned";
  if (schedule.is_even) text += ", even";
  if (schedule.is_whole) text += ", whole";
  if (schedule.is_wide) text += ", wide";
  if (schedule.is_split) text += ", split";
  if (schedule.parts > 1) text += fmt::format(", {} parts", schedule.parts);
  return text;
}

}  // namespace nitinol::cuda
