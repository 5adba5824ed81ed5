// How much memory tensors take.
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

}  // namespace nitinol

#pragma GCC visibility pop
