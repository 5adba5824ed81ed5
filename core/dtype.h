// Element types of tensors, their names, and the one promotion table.
#pragma once

#include "core/scalar.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string_view>
#include <type_traits>

#pragma GCC visibility push(default)

namespace nitinol {

/// Element type of a tensor. `boolean` is one byte, 0 or 1; f16 and bf16 are stored in 16 bits and
/// compute in f32.
enum class DType : uint8_t { boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64 };
using enum DType;

inline constexpr int dtype_count = 10;

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DType dtype) {
  constexpr std::array<uint8_t, dtype_count> sizes = {1, 1, 1, 2, 4, 8, 2, 2, 4, 8};
  return sizes[static_cast<std::size_t>(dtype)];
}
/// "float32", "int64", "bool": the name that NumPy and PyTorch print.
[[nodiscard]] std::string_view name_of(DType dtype);
/// Writes name_of(dtype).
std::ostream& operator<<(std::ostream& stream, DType dtype);
/// "f32", "i64", "bool": the name used in graphs.
[[nodiscard]] std::string_view short_name_of(DType dtype);
/// The dtype with that short or long name, or nothing.
[[nodiscard]] std::optional<DType> dtype_named(std::string_view name);

[[nodiscard]] bool is_floating(DType dtype);
/// True for u8, i8, i16, i32, i64; false for boolean.
[[nodiscard]] bool is_integer(DType dtype);

/// The dtype in which `a` and `b` meet: the Array API table within a kind; an integer or boolean
/// with a floating dtype gives the floating one (as PyTorch); f16 with bf16 gives f32.
[[nodiscard]] DType promote(DType a, DType b);

/// What formulas compute in: pred for boolean, f32 for f16 and bf16, else the dtype itself.
[[nodiscard]] ScalarType compute_type(DType dtype);

/// A set of dtypes, for what an op accepts.
class DTypes {
 public:
  constexpr DTypes() = default;
  constexpr DTypes(std::initializer_list<DType> list) {
    for (const DType dtype : list) bits_ = static_cast<uint16_t>(bits_ | bit(dtype));
  }
  [[nodiscard]] constexpr bool contains(DType dtype) const { return (bits_ & bit(dtype)) != 0; }
  friend constexpr DTypes operator|(DTypes a, DTypes b) {
    a.bits_ = static_cast<uint16_t>(a.bits_ | b.bits_);
    return a;
  }

 private:
  static constexpr uint16_t bit(DType dtype) {
    return static_cast<uint16_t>(1U << static_cast<unsigned>(dtype));
  }
  uint16_t bits_ = 0;
};

inline constexpr DTypes floating = {f16, bf16, f32, f64};
inline constexpr DTypes integers = {u8, i8, i16, i32, i64};
inline constexpr DTypes numeric = floating | integers;
inline constexpr DTypes any_dtype = numeric | DTypes{boolean};
inline constexpr DTypes bitwise = integers | DTypes{boolean};

/// The DType that stores C++ type T (bool, signed integers of 1 to 8 bytes, unsigned ones of 1,
/// float, double).
template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) {
    return boolean;
  } else if constexpr (std::is_same_v<T, float>) {
    return f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return f64;
  } else {
    constexpr bool is_integer = std::is_integral_v<T> && (std::is_signed_v<T> || sizeof(T) == 1);
    static_assert(is_integer,
                  "no dtype holds this type: convert unsigned integers to int64_t, long double to "
                  "double");
    if (sizeof(T) == 1) return std::is_signed_v<T> ? i8 : u8;
    if (sizeof(T) == 2) return i16;
    return sizeof(T) == 4 ? i32 : i64;
  }
}

}  // namespace nitinol

#pragma GCC visibility pop
