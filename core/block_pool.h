// BlockPool<T>: memory of Ts that come and go all the time, recycled per thread.
#pragma once

#include "core/per_thread.h"

#include <cstddef>
#include <new>

namespace nitinol {

/// Taking and giving back cost a few nanoseconds. A block given by another thread than the one that
/// took it joins that thread's list; each is bounded.
template <class T>
class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    while (first_ != nullptr) ::operator delete(pop());
  }

  /// Uninitialised memory of a T.
  static void* take() {
    BlockPool* const pool = PerThread<BlockPool>::get();
    return pool != nullptr && pool->first_ != nullptr ? pool->pop() : ::operator new(sizeof(T));
  }
  static void give(void* block) noexcept {
    BlockPool* const pool = PerThread<BlockPool>::get();
    if (pool == nullptr || pool->count_ == most) return ::operator delete(block);
    pool->first_ = new (block) Free{pool->first_};
    ++pool->count_;
  }

 private:
  static constexpr std::size_t most = 1024;
  struct Free {
    Free* next;
  };

  void* pop() {
    Free* const block = first_;
    first_ = block->next;
    --count_;
    return block;
  }

  Free* first_ = nullptr;
  std::size_t count_ = 0;
};

}  // namespace nitinol
