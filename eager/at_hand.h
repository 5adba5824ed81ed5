// AtHand: what a thread keeps of the cache of executables, in a direct-mapped table.
#pragma once

#include "core/executables.h"
#include "core/per_thread.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace nitinol::eager {

template <class Entry, std::size_t count>
class AtHand {
 public:
  static_assert((count & (count - 1)) == 0, "a power of two");

  /// The calling thread's entry number `hash` % count, empty after clear_executables(). Null in a
  /// thread that is ending.
  static Entry* find(std::size_t hash) {
    AtHand* const table = PerThread<AtHand>::get();
    if (table == nullptr) return nullptr;
    const uint64_t clears = executable_clears.load(std::memory_order_relaxed);
    if (table->clears_ != clears) [[unlikely]] {
      table->clears_ = clears;
      for (Entry& entry : table->entries_) entry = {};  // one by one: all are 40 KiB of stack
    }
    return &table->entries_[hash & (count - 1)];
  }

 private:
  std::array<Entry, count> entries_;
  uint64_t clears_ = executable_clears.load(std::memory_order_relaxed);
};

}  // namespace nitinol::eager
