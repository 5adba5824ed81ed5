// DeviceLimits: what a device tells the compiler about its memory.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nitinol {

/// From where on something pays on a device. Results do not depend on them.
struct DeviceLimits {
  /// Outputs of at least this many bytes go around the caches: well beyond the last-level cache.
  std::size_t streaming_bytes = std::size_t{32} << 20;
  /// What a row stage keeps for a later one: rows of at most this many bytes (part of a
  /// second-level cache), of values that take more than these instructions to compute again. On a
  /// processor, one thread, without and with: softmax of 4096 x 1024 2.0 and 1.55 ms, of 50 x
  /// 60,000 1.3 and 1.07.
  int64_t kept_row_bytes = 262144;
  std::size_t cheap_instructions = 12;
  /// Vectors run across rows that are short (Order::turned), or lie side by side (Order::across),
  /// where there are at least so many, and rows that do not lie as one are brought together
  /// (Kernel::reduced_loops); 0: never.
  int64_t rows_of_vectors = 0;
};

}  // namespace nitinol
