// From a ScalarType to the native type it stands for.
#pragma once

#include "core/native.h"
#include "core/scalar.h"

#include <bit>
#include <cstdint>
#include <type_traits>

namespace nitinol {

/// The value of these bits, and the bits of a value; zero-extended.
template <class T>
T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>)
    return bits != 0;
  else
    return std::bit_cast<T>(static_cast<native::Bits<T>>(bits));
}
template <class T>
uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? 1 : 0;
  else
    return std::bit_cast<native::Bits<T>>(value);
}

/// Calls f with a value of the native type that `type` stands for.
template <class F>
auto with_type(ScalarType type, F f) {
  switch (type) {
    case ScalarType::pred:
      return f(bool{});
    case ScalarType::u8:
      return f(uint8_t{});
    case ScalarType::i8:
      return f(int8_t{});
    case ScalarType::u16:
      return f(uint16_t{});
    case ScalarType::i16:
      return f(int16_t{});
    case ScalarType::u32:
      return f(uint32_t{});
    case ScalarType::i32:
      return f(int32_t{});
    case ScalarType::u64:
      return f(uint64_t{});
    case ScalarType::i64:
      return f(int64_t{});
    case ScalarType::f32:
      return f(float{});
    case ScalarType::f64:
      return f(double{});
  }
  return f(bool{});
}

}  // namespace nitinol
