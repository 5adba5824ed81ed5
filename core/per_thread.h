// PerThread<T>: one T on the heap for each thread that needs it, behind a plain pointer.
//
// A thread_local T would take its size from every thread of the process, and dlopen refuses a
// library that has more of it than a few hundred bytes. It could also be used after its destructor
// has run: by the destructor of another thread_local, or of a static object once main has returned.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <utility>

namespace nitinol {

template <class T>
class PerThread {
 public:
  /// The calling thread's object, made at the first use and destroyed when the thread ends. Null in
  /// a thread whose object is gone, or if there is no memory: callers then do without.
  static T* get() noexcept { return object_ != nullptr ? object_ : make(); }

 private:
  struct Owner {
    Owner() = default;
    Owner(const Owner&) = delete;
    Owner& operator=(const Owner&) = delete;
    ~Owner() {
      has_ended_ = true;  // first: destroying the object may ask for it
      delete std::exchange(object_, nullptr);
    }
  };

  [[gnu::noinline]] static T* make() noexcept {
    if (has_ended_) return nullptr;
    static thread_local Owner owner;
    object_ = new (std::nothrow) T;
    return object_;
  }

  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local T* object_ = nullptr;
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local bool has_ended_ = false;
};

/// Memory of Ts that come and go all the time, recycled: taking and giving back cost a few
/// nanoseconds. A block given by another thread than the one that took it joins that thread's list;
/// each is bounded.
template <class T>
class BlockPool {
 public:
  BlockPool() = default;
  BlockPool(const BlockPool&) = delete;
  BlockPool& operator=(const BlockPool&) = delete;
  ~BlockPool() {
    while (count_ > 0) ::operator delete(blocks_[--count_]);
  }

  /// Uninitialised memory of a T.
  static void* take() {
    BlockPool* const pool = PerThread<BlockPool>::get();
    return pool != nullptr && pool->count_ > 0 ? pool->blocks_[--pool->count_]
                                               : ::operator new(sizeof(T));
  }
  static void give(void* block) noexcept {
    BlockPool* const pool = PerThread<BlockPool>::get();
    if (pool != nullptr && pool->count_ < pool->blocks_.size()) {
      pool->blocks_[pool->count_++] = block;
    } else {
      ::operator delete(block);
    }
  }

 private:
  std::array<void*, 1024> blocks_;
  std::size_t count_ = 0;
};

}  // namespace nitinol
