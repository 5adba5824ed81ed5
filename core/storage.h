// Storage: a counted block of device memory that tensors and their views share.
#pragma once

#include "core/handle.h"

#include <cstddef>

#pragma GCC visibility push(default)

namespace nitinol {

class Backend;

/// A block of memory of one device, 64-byte aligned if it came from our allocator.
struct Storage : Counted {
  bool is_borrowed = false;  ///< the user's memory: never written, never reused
  void* data = nullptr;
  std::size_t bytes = 0;
  Backend* backend = nullptr;  ///< whose memory it is; null: the host's, always ready to be read
  void (*release)(Storage*) noexcept =
      nullptr;  ///< gives the block back; also ends the Storage itself
};

inline void destroy(Storage* storage) {
  storage->release(storage);
}

using StorageHandle = Handle<Storage>;

}  // namespace nitinol

#pragma GCC visibility pop
