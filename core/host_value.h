// HostValue<T>: a host field (a module's training flag) that compiled functions may depend on.
#pragma once

#include "core/interpreter.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#pragma GCC visibility push(default)

namespace nitinol {

/// A guard of a Plan: the Plan may run while same(object, bits).
struct HostValueGuard {
  std::shared_ptr<const void> object;
  uint64_t bits = 0;
  bool (*same)(const void* object, uint64_t bits) = nullptr;
  friend bool operator==(const HostValueGuard&, const HostValueGuard&) = default;
};

/// A value of host code (bool, enum, number of at most 8 bytes). Reading it while a compiled
/// function records makes the Plan valid for this value only: after a change the function is
/// recorded anew for the new value. Copies share the value, as copies of a Variable do: a copy of a
/// module is the same module.
template <class T>
requires(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t)) class HostValue {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): stands for the field
  HostValue(T value = {}) : value_(std::make_shared<std::atomic<T>>(value)) {}
  HostValue& operator=(T value) {
    value_->store(value);
    return *this;
  }
  operator T() const {  // NOLINT(google-explicit-constructor)
    const T value = value_->load();
    current().guard({.object = value_, .bits = bits_of(value), .same = &same});
    return value;
  }
  /// The value's bits, without a guard.
  [[nodiscard]] uint64_t bits() const { return bits_of(value_->load()); }

 private:
  static uint64_t bits_of(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  static bool same(const void* object, uint64_t bits) {
    return bits_of(static_cast<const std::atomic<T>*>(object)->load()) == bits;
  }
  std::shared_ptr<std::atomic<T>> value_;
};

}  // namespace nitinol

#pragma GCC visibility pop
