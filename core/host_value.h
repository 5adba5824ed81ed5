// HostValue<T>: a host field (a module's training flag) that compiled functions may depend on.
#pragma once

#include "core/interpreter.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace nitinol {

/// A guard of a Plan: the Plan may run while same(object, bits). The object must outlive the
/// compiled function's calls.
struct HostValueGuard {
  const void* object = nullptr;
  uint64_t bits = 0;
  bool (*same)(const void* object, uint64_t bits) = nullptr;
  friend bool operator==(const HostValueGuard&, const HostValueGuard&) = default;
};

/// A value of host code (bool, enum, number of at most 8 bytes). Reading it while a compiled
/// function records makes the Plan valid for this value only: after a change the function is
/// recorded anew for the new value.
template <class T>
requires(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t)) class HostValue {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): stands for the field
  HostValue(T value = {}) : value_(value) {}
  HostValue& operator=(T value) {
    value_ = value;
    return *this;
  }
  operator T() const {  // NOLINT(google-explicit-constructor)
    current().guard({.object = this, .bits = bits_of(value_), .same = &same});
    return value_;
  }

 private:
  static uint64_t bits_of(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  static bool same(const void* object, uint64_t bits) {
    return bits_of(static_cast<const HostValue*>(object)->value_) == bits;
  }
  T value_;
};

}  // namespace nitinol
