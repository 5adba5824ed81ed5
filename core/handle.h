// Handle<T>: an owning pointer to a T that counts its own references.
#pragma once

#include <boost/smart_ptr/intrusive_ptr.hpp>

#include <atomic>
#include <cstdint>

#pragma GCC visibility push(default)

namespace nitinol {

/// Base of what a Handle can own. `destroy(T*)`, found by argument-dependent look-up, ends its
/// life.
struct Counted {
  std::atomic<int32_t> references = 1;
};

// What boost::intrusive_ptr calls.
inline void intrusive_ptr_add_ref(Counted* object) noexcept {
  object->references.fetch_add(1, std::memory_order_relaxed);
}
template <class T>
void intrusive_ptr_release(T* object) {
  // A unique owner may skip the atomic decrement: nobody else can be counting.
  if (object->references.load(std::memory_order_acquire) == 1 ||
      object->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    destroy(object);
  }
}

/// One reference to a T derived from Counted; empty when default-constructed. Copying is
/// thread-safe.
template <class T>
using Handle = boost::intrusive_ptr<T>;

/// Takes over the reference the object was born with.
template <class T>
Handle<T> adopt(T* object) {
  return {object, false};
}
/// A second reference to one that no other thread has seen yet, which has one.
template <class T>
Handle<T> share_fresh(T* object) {
  object->references.store(2, std::memory_order_relaxed);
  return {object, false};
}
/// True if this is the only reference (acquire).
template <class T>
[[nodiscard]] bool is_unique(const Handle<T>& handle) {
  return handle && handle->references.load(std::memory_order_acquire) == 1;
}

}  // namespace nitinol

#pragma GCC visibility pop
