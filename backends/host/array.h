// Memory for a while.
#pragma once

#include "backends/host/allocator.h"

#include <cstddef>
#include <cstdint>

namespace nitinol::host {

/// Uninitialised memory that the next call finds in the cache.
template <class T>
class Array {
 public:
  explicit Array(int64_t count) : memory_(allocate(static_cast<std::size_t>(count) * sizeof(T))) {}
  [[nodiscard]] T* get() const { return static_cast<T*>(memory_->data); }

 private:
  StorageHandle memory_;
};

}  // namespace nitinol::host
