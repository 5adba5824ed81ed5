// The allocator of host memory: caches blocks, so that a program in a steady state asks the system
// for nothing.
#pragma once

#include "core/memory.h"
#include "core/storage.h"

#include <cstddef>

namespace nitinol::host {

/// In bytes.
inline constexpr std::size_t line = 64, page = 4096;

/// At least `bytes` of 64-byte aligned, uninitialised memory. Any thread may release it. Throws
/// Error(value) if the budget or the system does not allow it, after giving back what is cached.
[[nodiscard]] StorageHandle allocate(std::size_t bytes);

/// Counts of the whole process. Blocks in other threads' caches count as cached.
[[nodiscard]] MemoryStatistics memory_statistics();
/// `in_use` and `allocations` of these, for who asks all the time.
[[nodiscard]] MemoryStatistics memory_counts();

/// See Backend. Caches of other threads empty themselves at those threads' next allocation or
/// release.
void set_memory_budget(std::size_t bytes);
void release_cached_memory();
void reset_peak_memory();

}  // namespace nitinol::host
