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
enum class DType : uint8_t { boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64 };
using enum DType;

/// What is told about a dtype, and everything else follows from.
struct DTypeInfo {
  std::string_view name;        ///< as NumPy and PyTorch print it
  std::string_view short_name;  ///< as in graphs
  ScalarType compute;           ///< what formulas compute in
  ScalarType stored;            ///< what an element is in memory
  uint8_t digits;               ///< all integers up to 2^digits in magnitude are elements
};

/// The dtypes, in the order of the enum: the one list of them.
inline constexpr std::array<DTypeInfo, 13> dtype_infos = {{
    {"bool", "bool", ScalarType::pred, ScalarType::u8, 0},
    {"uint8", "u8", ScalarType::u8, ScalarType::u8, 8},
    {"int8", "i8", ScalarType::i8, ScalarType::i8, 7},
    {"uint16", "u16", ScalarType::u16, ScalarType::u16, 16},
    {"int16", "i16", ScalarType::i16, ScalarType::i16, 15},
    {"uint32", "u32", ScalarType::u32, ScalarType::u32, 32},
    {"int32", "i32", ScalarType::i32, ScalarType::i32, 31},
    {"uint64", "u64", ScalarType::u64, ScalarType::u64, 64},
    {"int64", "i64", ScalarType::i64, ScalarType::i64, 63},
    {"float16", "f16", ScalarType::f32, ScalarType::u16, 11},
    {"bfloat16", "bf16", ScalarType::f32, ScalarType::u16, 8},
    {"float32", "f32", ScalarType::f32, ScalarType::f32, 24},
    {"float64", "f64", ScalarType::f64, ScalarType::f64, 53},
}};

inline constexpr int dtype_count = dtype_infos.size();

[[nodiscard]] constexpr const DTypeInfo& info_of(DType dtype) {
  return dtype_infos[static_cast<std::size_t>(dtype)];
}

inline constexpr auto dtype_sizes = [] {
  std::array<uint8_t, dtype_infos.size()> all = {};
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = static_cast<uint8_t>(size_of(dtype_infos[i].stored));
  return all;
}();

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DType dtype) {
  return dtype_sizes[static_cast<std::size_t>(dtype)];
}
/// "float32", "int64", "bool": the name that NumPy and PyTorch print.
[[nodiscard]] std::string_view name_of(DType dtype);
/// Writes name_of(dtype).
std::ostream& operator<<(std::ostream& stream, DType dtype);
/// "f32", "i64", "bool": the name used in graphs.
[[nodiscard]] std::string_view short_name_of(DType dtype);
/// The dtype with that short or long name, or nothing.
[[nodiscard]] std::optional<DType> dtype_named(std::string_view name);

/// True for f16, bf16, f32, f64.
[[nodiscard]] bool is_floating(DType dtype);
/// True for integers, signed or not; false for boolean.
[[nodiscard]] bool is_integer(DType dtype);
/// True for u8, u16, u32, u64.
[[nodiscard]] bool is_unsigned(DType dtype);

/// promote() of two that differ.
[[nodiscard]] DType promote_others(DType a, DType b);
/// The dtype in which `a` and `b` meet: the Array API table within a kind; an integer or boolean
/// with a floating dtype gives the floating one (as PyTorch); f16 with bf16 gives f32. Throws
/// Error(dtype) for u64 and a signed integer, which that table leaves out: no integer dtype holds
/// both (NumPy takes float64, which holds neither).
[[nodiscard]] inline DType promote(DType a, DType b) {
  return a == b ? a : promote_others(a, b);
}

/// What formulas compute in: pred for boolean, f32 for f16 and bf16, else the dtype itself.
[[nodiscard]] constexpr ScalarType compute_type(DType dtype) {
  return info_of(dtype).compute;
}
/// What an element is in memory: u8 for boolean, u16 for f16 and bf16, else the dtype itself.
[[nodiscard]] constexpr ScalarType stored_type(DType dtype) {
  return info_of(dtype).stored;
}

/// Whether what is computed in `type` goes to `dtype` by way of f32 rounded to odd, so that it
/// rounds once: to 16 bits, from anything but f32.
[[nodiscard]] constexpr bool rounds_to_odd(ScalarType type, DType dtype) {
  return (dtype == f16 || dtype == bf16) && type != ScalarType::f32;
}

/// A set of dtypes, for what an op accepts.
class DTypes {
 public:
  constexpr DTypes() = default;
  constexpr DTypes(std::initializer_list<DType> list) {
    for (const DType dtype : list) bits_ = static_cast<uint16_t>(bits_ | bit(dtype));
  }
  [[nodiscard]] constexpr bool contains(DType dtype) const { return (bits_ & bit(dtype)) != 0; }
  bool operator==(const DTypes&) const = default;
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
inline constexpr DTypes unsigned_integers = {u8, u16, u32, u64};
inline constexpr DTypes integers = unsigned_integers | DTypes{i8, i16, i32, i64};
inline constexpr DTypes numeric = floating | integers;
inline constexpr DTypes any_dtype = numeric | DTypes{boolean};
inline constexpr DTypes bitwise = integers | DTypes{boolean};

/// The DType that stores C++ type T: bool, an integer of 1 to 8 bytes, float or double.
template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8,
                "no dtype holds this type: convert long double to double");
  for (std::size_t i = 0; i < dtype_infos.size(); ++i) {
    const auto dtype = static_cast<DType>(i);
    if (compute_type(dtype) == scalar_type_of<T> &&
        (dtype == boolean || stored_type(dtype) == compute_type(dtype)))
      return dtype;
  }
  return f32;
}
static_assert(dtype_of<float>() == f32, "f32, not what computes in it");

}  // namespace nitinol

#pragma GCC visibility pop
