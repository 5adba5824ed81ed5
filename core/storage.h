// Storage: a counted block of device memory that tensors and their views share.
#pragma once

#include "core/handle.h"

#include <atomic>
#include <cstddef>
#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

class Backend;
class DeferredCheck;

/// A block of memory of one device, 64-byte aligned if it came from our allocator.
struct Storage : Counted {
  bool is_borrowed = false;  ///< the user's memory: never written, never reused
  uint8_t size_class = 0;    ///< the allocator's own
  void* data = nullptr;
  std::size_t bytes = 0;
  Backend* backend = nullptr;  ///< whose memory it is; null: the host's, always ready to be read
  void (*release)(Storage*) noexcept =
      nullptr;  ///< gives the block back; also ends the Storage itself
  /// The call that fills it, counted, while that may yet be found to have failed
  /// (core/deferred_check.h). Then nobody may look at the memory without settle().
  std::atomic<DeferredCheck*> check = nullptr;
};

/// Waits until the call that fills the memory is known not to have failed. Throws its error if it
/// has. No cell may be locked.
void settle(Storage& storage);
void destroy_marked(Storage* storage);

inline void destroy(Storage* storage) {
  if (storage->check.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    return destroy_marked(storage);
  storage->release(storage);
}

using StorageHandle = Handle<Storage>;

/// Which value of which Variable lies somewhere: equal ones are the same elements. Cell 0: a
/// constant.
struct ValueId {
  uint64_t cell = 0, version = 0;
  friend bool operator==(const ValueId&, const ValueId&) = default;
};

}  // namespace nitinol

#pragma GCC visibility pop
