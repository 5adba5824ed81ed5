// What backends have in common whose memory is the host's.
#pragma once

#include "core/backend.h"

namespace nitinol::host {

/// Memory of the allocator, moved by the calling thread.
class HostMemoryBackend : public Backend {
 public:
  [[nodiscard]] bool is_host_memory() const final { return true; }
  StorageHandle allocate(std::size_t bytes) final;
  void upload(const void* from, void* to, std::size_t bytes) final;
  void download(const void* from, void* to, std::size_t bytes) final;
  void fill(void* to, uint64_t bits, std::size_t element_bytes, std::size_t count) final;
  MemoryStatistics memory() final;
  void set_memory_budget(std::size_t bytes) final;
  void release_cached_memory() final;
  void reset_peak_memory() final;
  void synchronize() final {}
  [[nodiscard]] DeviceLimits limits() const override { return {.rows_of_vectors = 16}; }
};

}  // namespace nitinol::host
