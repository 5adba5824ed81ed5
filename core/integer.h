// Integer: an index, size, axis or step, as host code gives it.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#pragma GCC visibility push(default)

namespace nitinol {

/// An integer type of C++ other than bool, or an enum that stands for its number.
template <class T>
concept IntegerType = !std::same_as<std::remove_cv_t<T>, bool> &&
                      (std::integral<T> || (std::is_enum_v<T> && std::convertible_to<T, int64_t>));

/// Throws Error(value): the function named `where` was given an unsigned number beyond int64.
/// (core/scalar_value.cpp)
[[noreturn]] void throw_beyond_int64(const char* where, uint64_t value, const char* fix);

/// What functions take for an index, a size or an axis: any integer, signed or not, so std::size_t
/// needs no cast. Neither a bool nor a floating number, which C++ would turn into an int64_t in
/// silence: `max(x, 0.0)` does not compile.
class Integer {
 public:
  constexpr Integer() = default;
  /// Throws Error(value) for an unsigned number beyond int64.
  template <IntegerType T>
  constexpr Integer(T value)  // NOLINT(google-explicit-constructor): integers are Integers
      : value_(static_cast<int64_t>(value)) {
    if constexpr (std::unsigned_integral<T> && sizeof(T) >= sizeof(int64_t)) {
      if (value_ < 0)
        throw_beyond_int64("Integer", value, "Pass negative indices as signed numbers.");
    }
  }
  // NOLINTNEXTLINE(google-explicit-constructor)
  constexpr operator int64_t() const { return value_; }

 private:
  int64_t value_ = 0;
};

}  // namespace nitinol

#pragma GCC visibility pop
