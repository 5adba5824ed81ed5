// Handle<T>: an owning pointer to a T that counts its own references.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol {

/// Base of what a Handle can own. `destroy(T*)`, found by argument-dependent look-up, ends its
/// life.
struct Counted {
  std::atomic<int32_t> references = 1;
};

/// One reference to a T derived from Counted; empty when default-constructed. Copying is
/// thread-safe.
template <class T>
class Handle {
 public:
  Handle() = default;
  /// Takes over the reference the object was born with.
  static Handle adopt(T* object) {
    Handle handle;
    handle.object_ = object;
    return handle;
  }
  Handle(const Handle& other) : object_(other.object_) {
    if (object_ != nullptr) object_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (object_ == nullptr) return;
    // A unique owner may skip the atomic decrement: nobody else can be counting.
    if (object_->references.load(std::memory_order_acquire) == 1 ||
        object_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy(object_);
    }
  }

  [[nodiscard]] T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  /// True if this is the only reference (acquire).
  [[nodiscard]] bool is_unique() const {
    return object_ != nullptr && object_->references.load(std::memory_order_acquire) == 1;
  }
  friend bool operator==(const Handle& a, const Handle& b) { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

}  // namespace nitinol

#pragma GCC visibility pop
