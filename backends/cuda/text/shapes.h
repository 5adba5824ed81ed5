// The loops around the stages of a kernel, by the shape of its schedule.
#pragma once

#include "backends/cuda/text/body.h"

namespace nitinol::cuda {

void write_points(Body& body);
void write_tiles(Body& body);
void write_rows(Body& body);
void write_blocks(Body& body);
void write_columns(Body& body);

/// Points along a side of a square (tiles), by the largest operand that is read across.
[[nodiscard]] int tile_side(const Kernel& kernel);
/// Bytes of shared memory that the square of operand k takes.
[[nodiscard]] int64_t tile_bytes(const Kernel& kernel, std::size_t k);

/// Threads that share a long column.
inline constexpr int shared_column_threads = 8;
/// Blocks of a column that a thread takes by itself, if columns are many.
inline constexpr int64_t most_own_blocks = 32;

}  // namespace nitinol::cuda
