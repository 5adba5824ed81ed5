// Schedule: how the threads of a GPU share the points of a launch.
#pragma once

#include "core/launch.h"
#include "core/reduction.h"

#include <cstdint>
#include <string>

namespace nitinol {
struct Kernel;
}  // namespace nitinol

namespace nitinol::cuda {

/// Threads of a block, of every kernel but those whose schedule says another number; and of a warp.
inline constexpr int block_threads = 256, warp_threads = 32;

/// All that CUDA text depends on beside the Kernel. Chosen from the sizes, strides and addresses of
/// a launch; launches with an equal one run the same code.
struct Schedule {
  enum class Shape : uint8_t {
    points,   ///< Order::none: a thread takes `width` neighbours along the innermost loop
    tiles,    ///< Order::none: a block of threads takes a square of the innermost loop and another,
              ///< along which some operands lie
    rows,     ///< Order::lanes, rows of one run: `threads` of a warp share a row
    blocks,   ///< Order::lanes: `warps` of a block of threads take a run of a row each in turn
    columns,  ///< Order::sequential: a thread takes a column, or `threads` blocks of it side by
              ///< side
  };
  Shape shape = Shape::points;
  uint8_t rank = 1;   ///< loops of the launch, the reduced one among them
  uint8_t width = 1;  ///< neighbouring elements that a thread takes: 1, 2, 4 or 8
  /// rows: that share a row; columns: that share a column; powers of two. points: each computes one
  /// result of the only point.
  uint8_t threads = 1;
  uint8_t across = 0;  ///< tiles: the other loop
  /// Of a block of threads.
  uint8_t warps = block_threads / warp_threads;
  /// rows, blocks: how many chunks of a row its only round has, each written out; else 0.
  uint8_t chunks = 0;
  /// rows, blocks: a bit for each operand, of the first 64, whose elements are kept in registers
  /// from stage to stage. The others are read again by each.
  uint64_t kept = 0;
  /// blocks, columns: of the stack on which results of rounds wait, which are fewer than 2 to the
  /// power of it.
  uint8_t levels = 1;
  bool is_aligned = false;  ///< the neighbours are loaded and stored at once
  bool is_even = false;     ///< aligned: rows are multiples of `width`, no thread's piece is cut
  bool is_whole = false;    ///< rows: no chunk of a row is cut short; blocks: no round
  bool is_wide = false;     ///< indices need 64 bits
  /// points: launches of one kernel that are made as one, at most; see parts_for().
  uint8_t parts = 1;
  /// blocks, columns: rows are few and long. Parts of a row go to several blocks of threads, and
  /// each stage of elements is a launch of its own, whose last block makes what follows of rows.
  bool is_split = false;
  friend bool operator==(const Schedule&, const Schedule&) = default;

  /// Elements of a row that a block of threads takes in a round (blocks): a run by each warp.
  [[nodiscard]] int64_t round_elements() const { return warps * reduction_order::lanes_run; }
};

/// The schedule for a launch of `kernel` that is not empty. The launch's arguments fit the kernel.
[[nodiscard]] Schedule schedule_of(const Kernel& kernel, const Launch& launch);

/// How many launches of this kernel, each of `schedule`, may be made as one, and 1 if each is to be
/// made by itself. `most_bytes`: of arguments that the driver passes.
[[nodiscard]] std::size_t most_parts(const Kernel& kernel, const Schedule& schedule,
                                     std::size_t most_bytes);
/// The parts of a text for so many launches: one of a few numbers, so that a layer more does not
/// mean another text. It is at most `most`, which is what most_parts() gives.
[[nodiscard]] std::size_t parts_for(std::size_t launches, std::size_t most);

/// "rows of 32 threads, width 2, 16 chunks, 1 kept, aligned"
[[nodiscard]] std::string to_string(const Schedule& schedule);

}  // namespace nitinol::cuda
