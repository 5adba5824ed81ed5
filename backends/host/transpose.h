// Transposing blocks of memory without touching a cache line twice.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nitinol::host {

/// A block of `rows` x `columns` elements that follow each other in memory along rows' direction,
/// not columns': element (i, j) lies at from + i * size + j * from_step, and goes to to + i *
/// to_step + j * size.
struct TransposedBlock {
  const char* from;
  int64_t from_step;  ///< bytes
  char* to;
  int64_t to_step;  ///< bytes
  int64_t rows, columns;
  /// What is written goes around the caches where that is whole lines: each is written at once,
  /// and need not be fetched first. Whoever asks for it calls finish_streams() (stream.h).
  bool is_streamed = false;
};

/// size: of an element, 1, 2, 4 or 8 bytes.
void transpose(const TransposedBlock& block, std::size_t size);

}  // namespace nitinol::host
