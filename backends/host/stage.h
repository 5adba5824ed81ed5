// StageCall: how the loop-nest driver of host backends calls the code of one stage.
//
// The driver (host/loop_nest.cpp) owns everything that decides results and is the same for every
// host backend: the walk over the domain, threads, blocks and the canonical order of reduction. A
// stage function only visits a two-dimensional piece. Three kinds exist: interpreted (reference),
// prebuilt loops (eager), generated (LLVM).
//
// arg_* reductions accumulate a value together with its index along the reduced dimension, which is
// their result; the driver gives the index of the first point of each call, so no operand is needed
// for it.
#pragma once

#include "core/launch.h"
#include "core/reduction.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace nitinol {
struct Kernel;
}  // namespace nitinol

namespace nitinol::host {

/// Points visited: outer in [0, outer_size), inner in [0, inner_size), outer loop outside.
/// Order::none: any piece of the domain; inner is the innermost dimension.
/// Order::lanes, element level: outer runs along rows, inner along one block of the reduced
/// dimension; or outer runs along blocks of one row, if the stage reads operands alone and has no
/// arg_*.
/// Order::sequential, element level: outer runs along the reduced dimension within a block, inner
/// along rows. Order::turned, element level: outer runs along all of a row, inner along rows.
/// Order::across, element level: outer runs along a lane within a block, inner along rows.
/// Level::row: outer_size is 1; inner runs along rows.
struct StageCall {
  char* const* pointers;  ///< per operand: its element at (0, 0); for a position: the number itself
  const int64_t* outer;   ///< per operand: bytes (position: units) per outer step
  const int64_t* inner;   ///< per operand: bytes (position: units) per inner step
  int64_t outer_size;
  int64_t inner_size;
  const uint64_t* scalars;  ///< per operand: slot bits (scalar operands only)
  /// Per reduction, in the accumulator's type (pred: one byte 0/1).
  /// Element level, lanes: outer_size values, which the call sets: of lanes_of(type) lanes, which
  ///   start from the neutral element, element i joins lane i % lanes, in runs if the order shows
  ///   (reduction_order::lanes_run); then the lanes join as Combiner::fold says.
  /// Element level, sequential and across: inner_size values, read and written: value j joins
  /// element j of each outer step. Element level, turned: of a reduction that keeps_lanes,
  /// outer_size times inner_size values,
  ///   which the call sets: value j of group i is that of row j at step i. Others: as sequential.
  void* const* accumulators = nullptr;
  int64_t* const* accumulator_positions = nullptr;  ///< arg_* only: as many i64 positions
  int64_t position = 0;  ///< element level: index along the reduced dimension of the first point
  /// Per reduction: finished results of earlier stages (arg_*: the i64 position); per row value:
  /// kept values. Arrays over rows: element j belongs to row j of this call.
  const void* const* results = nullptr;
  void* const* row_values = nullptr;
  Status* status = nullptr;  ///< of stages with checks
};

/// Order::turned: whether values are joined when all are there, since their order matters.
inline bool keeps_lanes(const Reduction& reduction) {
  return depends_on_order(reduction) || is_arg(reduction.combine);
}

/// The call for `size` points of one loop of an elementwise launch, which its operands walk by
/// `steps`.
inline StageCall flat_call(char* const* pointers, const int64_t* steps, int64_t size,
                           const Launch& launch) {
  return {.pointers = pointers,
          .outer = steps,
          .inner = steps,
          .outer_size = 1,
          .inner_size = size,
          .scalars = launch.scalars.data(),
          .status = launch.status};
}

using StageFunction = void (*)(const void* self, const StageCall& call);

/// The code of one stage with what it needs; the owner outlives it.
struct StageCode {
  StageFunction function = nullptr;
  const void* self = nullptr;
};

/// Runs `kernel`, whose stage s is code[s], over the launch's domain. Checks that the arguments are
/// of the stride classes the kernel was made for; throws Error(internal) if not.
void run_loop_nest(const Kernel& kernel, const StageCode* code, const Launch& launch);

/// The same for several independent launches of one elementwise kernel over contiguous memory.
void run_loop_nests(const Kernel& kernel, const StageCode* code, std::span<const Launch> launches);

}  // namespace nitinol::host
