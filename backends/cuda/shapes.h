// The loops around the stages of a kernel, by the shape of its schedule.
#pragma once

#include "backends/cuda/body.h"
#include "core/reduction.h"

namespace nitinol::cuda {

void write_points(Body& body);
void write_rows(Body& body);
void write_blocks(Body& body);
void write_columns(Body& body);

/// Most parts into which a row is split; a power of two.
inline constexpr uint32_t most_groups = 1024;
/// Threads that share a long column.
inline constexpr int shared_column_threads = 8;
/// A block of threads goes through its part of a row in fewer than 2 to the power of so many
/// rounds: columns that a thread has for itself, and others.
inline constexpr int short_levels = 5, round_levels = 16;
/// Elements that the warps of a block of threads take in a round (blocks): a run each.
inline constexpr int64_t round_elements = block_threads / warp_threads * reduction_order::lanes_run;

}  // namespace nitinol::cuda
