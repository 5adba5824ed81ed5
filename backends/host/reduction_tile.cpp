#include "backends/host/reduction_tile.h"

#include "backends/host/copy_apart.h"
#include "backends/host/loop_nest.h"
#include "backends/host/transpose.h"
#include "core/reduction.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace nitinol::host {
namespace {

/// Rows at once: their accumulators (sequential), or what several stages read of them (lanes), stay
/// in the first-level cache.
constexpr int64_t tile_rows = 1024, tile_rows_of_lanes = 64, tile_bytes_of_lanes = 32768;
/// Those that are copied (row_copies.h): a run of each, neighbours, makes a page.
constexpr int64_t tile_bytes_of_copies = 262144;
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

bool has_turned(const Kernel& kernel, const Domain& domain) {
  for (std::size_t k = 0; k < domain.operands; ++k) {
    if (is_turned(kernel, domain, k)) return true;
  }
  return false;
}

char** take_turned(const Kernel& kernel, const Domain& domain, int64_t points, Scratch& scratch) {
  char** const memory = scratch.take<char*>(domain.operands);
  for (std::size_t k = 0; k < domain.operands; ++k) {
    const std::size_t bytes = static_cast<std::size_t>(points) * size_of(kernel.operands[k].dtype);
    memory[k] = is_turned(kernel, domain, k) ? scratch.take<char>(bytes) : nullptr;
  }
  return memory;
}

Piece turned(const Kernel& kernel, const Domain& domain, const Piece& piece, char* const* memory,
             Pointers& pointers, TileSteps& steps) {
  for (std::size_t k = 0; k < domain.operands; ++k) {
    steps.reduced[k] = piece.reduced[k];
    steps.rows[k] = piece.rows[k];
    if (memory[k] == nullptr) continue;
    const std::size_t size = size_of(kernel.operands[k].dtype);
    steps.rows[k] = static_cast<int64_t>(size);
    steps.reduced[k] = piece.row_count * steps.rows[k];
    transpose({.from = std::exchange(pointers[k], memory[k]),
               .from_step = piece.rows[k],
               .to = memory[k],
               .to_step = steps.reduced[k],
               .rows = piece.length,
               .columns = piece.row_count},
              size);
  }
  return {.reduced = steps.reduced.data(),
          .rows = steps.rows.data(),
          .length = piece.length,
          .row_count = piece.row_count};
}

namespace {

/// Rows of a tile of Order::sequential: turned operands take no more than the nearest cache.
int64_t rows_in_order(const Kernel& kernel, const Domain& domain) {
  int64_t bytes = 0;  // of a row
  for (std::size_t k = 0; k < domain.operands; ++k) {
    if (is_turned(kernel, domain, k))
      bytes += block_of(kernel) * static_cast<int64_t>(size_of(kernel.operands[k].dtype));
  }
  return bytes == 0 ? tile_rows
                    : std::clamp(tile_bytes_of_lanes / bytes, fewest_rows_across, tile_rows);
}

}  // namespace

int64_t rows_of_tile(const Kernel& kernel, const Launch& launch, const Domain& domain) {
  if (domain.rank == 0) return 1;
  const int64_t last = domain.sizes[static_cast<std::size_t>(domain.rank - 1)];
  if (kernel.order == Order::sequential) return std::min(last, rows_in_order(kernel, domain));
  const bool is_across = kernel.order == Order::across;
  if (!is_across && domain.reduced_size > reduction_order::lanes_block) return 1;
  const auto passes = std::ranges::count(kernel.stages, Stage::Level::element, &Stage::level);
  const Steps& row_steps = domain.steps[static_cast<std::size_t>(domain.rank - 1)];
  // That are read again, or copied: of a row, and of all rows of a tile.
  int64_t bytes = 1, common_bytes = 0;
  const bool is_kept = passes > 1 || kernel.reduced_loops > 1;
  for (std::size_t k = 0; is_kept && k < domain.operands; ++k) {
    if (domain.reduced_steps[k] == 0 || kernel.operands[k].role == Role::output) continue;
    (row_steps[k] == 0 ? common_bytes : bytes) +=
        static_cast<int64_t>(size_of(kernel.operands[k].dtype)) * domain.reduced_size;
  }
  const int64_t fewest = is_across ? fewest_rows_across : 1;
  const int64_t most_bytes = is_across                  ? tile_bytes_across
                             : kernel.reduced_loops > 1 ? tile_bytes_of_copies
                                                        : tile_bytes_of_lanes;
  const int64_t fitting = std::clamp((most_bytes - common_bytes) / bytes, fewest,
                                     is_across ? tile_rows_across : tile_rows_of_lanes);
  if (launch.threads == 1) return std::min(fitting, last);
  const int64_t rows = domain.count(0, domain.rank);
  if (rows * domain.reduced_size < 2 * grain_of(kernel)) return std::min(fitting, last);
  return std::min({fitting, std::max(rows / (4 * int64_t{launch.threads}), fewest), last});
}

void find_steps(const Kernel& kernel, const Domain& domain, int64_t width, int64_t lanes,
                TileSteps& steps) {
  const auto last_loop = static_cast<std::size_t>(domain.rank - 1);
  const auto is_kept = [&](std::size_t k) { return kernel.operands[k].role == Role::scratch; };
  for (std::size_t k = 0; k < domain.operands; ++k) {
    if (is_kept(k)) continue;
    steps.rows[k] = domain.steps[last_loop][k];
    steps.reduced[k] = domain.reduced_steps[k];
  }
  for (std::size_t k = 0; k < domain.operands; ++k) {
    if (!is_kept(k)) continue;
    const Operand& operand = kernel.operands[k];
    const auto size = static_cast<int64_t>(size_of(operand.dtype));
    const auto alias = static_cast<std::size_t>(operand.alias);
    steps.rows[k] = operand.alias < 0 ? size : steps.rows[alias];
    steps.reduced[k] = operand.alias < 0 ? size * width : steps.reduced[alias];
  }
  for (std::size_t k = 0; k < domain.operands; ++k) steps.lanes[k] = steps.reduced[k] * lanes;
}

// ---- blocks abreast

namespace {

/// More make whole vectors by themselves.
constexpr int64_t most_rows = 16;
/// Of one operand, in a call.
constexpr int64_t most_points = 8192;

const Steps& row_steps(const Domain& domain) {
  return domain.steps[static_cast<std::size_t>(domain.rank - 1)];
}

int64_t rows_of(const Domain& domain) {
  return domain.sizes[static_cast<std::size_t>(domain.rank - 1)];
}

bool is_copied(const Operand& operand) {
  return operand.role == Role::input && operand.inner != StrideClass::zero;
}

}  // namespace

int64_t blocks_abreast(const Kernel& kernel, const Domain& domain) {
  if (kernel.order != Order::sequential || rows_of(domain) > most_rows) return 1;
  const int64_t block = block_of(kernel);
  const int64_t most = std::min(
      {most_blocks_at_once, most_points / (block * rows_of(domain)), domain.reduced_size / block});
  return static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(most, 1))));
}

bool takes_blocks_abreast(const Kernel& kernel, const Domain& domain, const Stage& stage) {
  return std::ranges::all_of(stage.sources,
                             [&](const Source& source) {
                               if (source.kind != Source::Kind::operand) return false;
                               const Operand& operand = kernel.operands[source.index];
                               if (operand.role == Role::scalar || is_copied(operand)) return true;
                               return domain.reduced_steps[source.index] == 0 &&
                                      row_steps(domain)[source.index] == 0;
                             }) &&
         std::ranges::all_of(stage.sinks, [&](const Sink& sink) {
           return sink.kind == Sink::Kind::accumulate &&
                  !is_arg(kernel.reductions[sink.index].combine);
         });
}

BlocksAbreast::BlocksAbreast(const Kernel& kernel, const Domain& domain, int64_t most,
                             Scratch& scratch)
    : kernel_(kernel),
      domain_(domain),
      rows_(rows_of(domain)),
      length_(block_of(kernel)),
      most_(most),
      memory_(scratch.take<char*>(domain.operands)) {
  for (int64_t half = most / 2, known = 1; half > 0; half /= 2, known *= 2) {
    for (int64_t i = 0; i < known; ++i) {
      const auto at = static_cast<std::size_t>(i);
      places_[at + static_cast<std::size_t>(known)] = places_[at] + half;
    }
  }
  for (std::size_t k = 0; k < domain.operands; ++k) {
    const Operand& operand = kernel.operands[k];
    const auto points = static_cast<std::size_t>(rows_ * most * length_);
    memory_[k] = is_copied(operand) ? scratch.take<char>(points * size_of(operand.dtype)) : nullptr;
  }
}

Piece BlocksAbreast::load(const Stage& stage, int64_t count, Pointers& pointers,
                          TileSteps& steps) const {
  for (std::size_t k = 0; k < domain_.operands; ++k) {
    steps.reduced[k] = domain_.reduced_steps[k];
    steps.rows[k] = row_steps(domain_)[k];
  }
  for (const Source& source : stage.sources) {
    const std::size_t k = source.index;
    if (memory_[k] == nullptr) continue;
    const auto size = static_cast<int64_t>(size_of(kernel_.operands[k].dtype));
    copy(k, count, pointers[k]);
    pointers[k] = memory_[k];
    steps.rows[k] = size;
    steps.reduced[k] = domain_.reduced_steps[k] == 0 ? 0 : size * rows_ * count;
  }
  return {.reduced = steps.reduced.data(),
          .rows = steps.rows.data(),
          .length = length_,
          .row_count = rows_ * count};
}

void BlocksAbreast::copy(std::size_t operand, int64_t count, const char* from) const {
  const auto size = static_cast<int64_t>(size_of(kernel_.operands[operand].dtype));
  const int64_t step = domain_.reduced_steps[operand], row_step = row_steps(domain_)[operand];
  const int64_t length = step == 0 ? 1 : length_;
  const int fewer = std::countr_zero(static_cast<uint64_t>(most_ / count));
  // Elements of all rows are one piece, where they are neighbours.
  const int64_t pieces = row_step == size ? 1 : rows_;
  const CopyApart copy_pieces = copy_apart_of(rows_ / pieces * size);
  for (int64_t block = 0; block < count; ++block) {
    const int64_t place = places_[static_cast<std::size_t>(block)] >> fewer;
    char* const to = memory_[operand] + place * rows_ * size;
    const char* const first = from + block * length_ * step;
    for (int64_t i = 0; i < pieces; ++i)
      copy_pieces(first + i * row_step, step, to + i * size, rows_ * count * size, length);
  }
}

}  // namespace nitinol::host
