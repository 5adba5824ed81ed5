#include "backends/host/host_memory.h"

#include "backends/host/allocator.h"
#include "core/copy_bytes.h"
#include "core/word.h"

#include <algorithm>
#include <cstring>

namespace nitinol::host {

StorageHandle HostMemoryBackend::allocate(std::size_t bytes) {
  return host::allocate(bytes);
}

void HostMemoryBackend::upload(const void* from, void* to, std::size_t bytes) {
  copy_bytes(to, from, bytes);
}

void HostMemoryBackend::download(const void* from, void* to, std::size_t bytes) {
  copy_bytes(to, from, bytes);
}

void HostMemoryBackend::fill(void* to, uint64_t bits, std::size_t element_bytes,
                             std::size_t count) {
  with_word(element_bytes, [&]<class Word>(Word) {
    std::fill_n(static_cast<Word*>(to), count, static_cast<Word>(bits));
  });
}

MemoryStatistics HostMemoryBackend::memory() {
  return memory_statistics();
}

void HostMemoryBackend::set_memory_budget(std::size_t bytes) {
  host::set_memory_budget(bytes);
}

void HostMemoryBackend::release_cached_memory() {
  host::release_cached_memory();
}

void HostMemoryBackend::reset_peak_memory() {
  host::reset_peak_memory();
}

}  // namespace nitinol::host
