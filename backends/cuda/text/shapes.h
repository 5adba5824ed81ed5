// The loops around the stages of a kernel, by the shape of its schedule.
#pragma once

#include "backends/cuda/text/body.h"
#include "core/reduction.h"

namespace nitinol::cuda {

void write_points(Body& body);
void write_rows(Body& body);
void write_blocks(Body& body);
void write_columns(Body& body);

/// Threads that share a long column.
inline constexpr int shared_column_threads = 8;
/// Blocks of a column that a thread takes by itself, if columns are many.
inline constexpr int64_t most_own_blocks = 32;
/// Elements that the warps of a block of threads take in a round (blocks): a run each.
inline constexpr int64_t round_elements = block_threads / warp_threads * reduction_order::lanes_run;

}  // namespace nitinol::cuda
