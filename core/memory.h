// How much memory tensors and prepared steps take.
#pragma once

#include "core/device.h"

#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

/// Counts of the allocator that tensors come from, for the whole process; sizes in bytes.
struct MemoryStatistics {
  std::size_t in_use = 0;           ///< of living tensors and of compiled functions that run
  std::size_t peak = 0;             ///< the most in use; blocks below 32 KiB are noticed late
  std::size_t cached = 0;           ///< kept for tensors to come
  uint64_t allocations = 0;         ///< served, from the cache or not
  uint64_t system_allocations = 0;  ///< asked of the operating system
};

/// The counts of a device. Throws Error(device) if there is no such device.
[[nodiscard]] MemoryStatistics memory_statistics(Device device = {});

/// Gives cached memory back to the system and lets the peak begin anew at what is in use now: the
/// peak afterwards is that of what ran in between. Throws Error(device) like memory_statistics().
void reset_peak_memory(Device device = {});

/// Counts of the cache of prepared steps: generated kernels and calls into libraries, which eager
/// and compiled code share.
struct ExecutableStatistics {
  uint64_t hits = 0;
  uint64_t prepared = 0;    ///< steps that were not there
  uint64_t from_disk = 0;   ///< kernels whose code an earlier process made
  uint64_t shipped = 0;     ///< and whose code came with the library
  uint64_t evicted = 0;     ///< steps that had to go because of the limit
  std::size_t entries = 0;  ///< steps in the cache
  std::size_t bytes = 0;    ///< what they hold: code, keys, library objects (estimated)
  std::size_t limit = 0;    ///< most bytes kept
};

/// Of this process.
[[nodiscard]] ExecutableStatistics executable_statistics();

/// Most bytes that the cache keeps; the least recently used steps go first, but never the latest.
/// Steps that a compiled function holds live on with it. 256 MiB unless set.
void set_executable_limit(std::size_t bytes);

/// Forgets all prepared steps. Calls that run and compiled functions keep theirs; what another
/// thread has at hand it forgets when it next computes, or ends.
void clear_executables();

}  // namespace nitinol

#pragma GCC visibility pop
