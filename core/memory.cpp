#include "core/memory.h"

#include "core/backend.h"

namespace nitinol {

MemoryStatistics memory_statistics(Device device) {
  return backend(device).memory();
}

void reset_peak_memory(Device device) {
  backend(device).release_cached_memory();
  backend(device).reset_peak_memory();
}

}  // namespace nitinol
