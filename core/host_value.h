// HostValue<T>: a host field (a module's training flag) that compiled functions may depend on.
#pragma once

#include "core/interpreter.h"

#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol {

/// A guard of a Plan: the Plan may run while same(object, bits).
struct HostValueGuard {
  std::shared_ptr<const void> object;
  std::string_view name;  ///< what explain() calls it, or nothing; lives as long as the object
  uint64_t bits = 0;
  bool (*same)(const void* object, uint64_t bits) = nullptr;
  /// The epoch in which the value was made (core/interpreter.h): one that a call makes itself is
  /// no input of it.
  uint64_t birth = 0;
  friend bool operator==(const HostValueGuard&, const HostValueGuard&) = default;
};

/// A value of host code (bool, enum, number of at most 8 bytes). Reading it while a compiled
/// function records makes the Plan valid for this value only: after a change the function is
/// recorded anew for the new value, and explain() says that what has this `name` changed. Copies
/// share the value, as copies of a Variable do: a copy of a module is the same module.
template <class T>
requires(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t)) class HostValue {
 public:
  // NOLINTNEXTLINE(google-explicit-constructor): stands for the field
  HostValue(T value = {}, std::string name = {})
      : cell_(std::make_shared<Cell>(value, std::move(name))) {}
  HostValue& operator=(T value) {
    cell_->value.store(value);
    return *this;
  }
  operator T() const {  // NOLINT(google-explicit-constructor)
    const T value = cell_->value.load();
    current().guard({.object = cell_,
                     .name = cell_->name,
                     .bits = bits_of(value),
                     .same = &same,
                     .birth = cell_->birth});
    return value;
  }
  /// The value's bits, without a guard.
  [[nodiscard]] uint64_t bits() const { return bits_of(cell_->value.load()); }

 private:
  struct Cell {
    Cell(T initial, std::string text) : value(initial), name(std::move(text)) {}
    std::atomic<T> value;
    std::string name;
    uint64_t birth = current_epoch();
  };
  static uint64_t bits_of(T value) {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  static bool same(const void* object, uint64_t bits) {
    return bits_of(static_cast<const Cell*>(object)->value.load()) == bits;
  }
  std::shared_ptr<Cell> cell_;
};

}  // namespace nitinol

#pragma GCC visibility pop
