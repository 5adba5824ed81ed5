// Values of native types as bits, and back.
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

/// The number of these bits; rounded if it has more digits.
inline double double_of_bits(ScalarType type, uint64_t bits) {
  return with_type(type, [&]<class T>(T) { return static_cast<double>(from_bits<T>(bits)); });
}

}  // namespace nitinol
