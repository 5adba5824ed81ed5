// Integer powers, modulo 2^width.
#pragma once

#include "core/math/compare.h"

#include <array>
#include <bit>
#include <cstddef>
#include <utility>

namespace nitinol {
namespace math {

/// Square and multiply over the lowest bits of the exponent; unrolled, so that loops are
/// vectorised.
template <int bits, Lane X>
constexpr X int_power_of_bits(X base, X exponent) {
  const X zero = small_constant(base, 0), one = small_constant(base, 1);
  X result = one, square = base;
  const auto step = [&](int bit) {
    // square or 1, by a mask: a test of one bit is not vectorised either.
    const X mask = zero - ((exponent >> small_constant(base, bit)) & one);
    result = result * (((square ^ one) & mask) ^ one);
    if (bit + 1 < bits) square = square * square;
  };
  [&]<std::size_t... k>(std::index_sequence<k...>) {
    (step(static_cast<int>(k)), ...);
  }
  (std::make_index_sequence<bits>{});
  return result;
}

/// A negative exponent: base^-n is 0, but for 1 and -1, whose powers repeat.
template <int bits, Lane X>
constexpr X int_power_of_any(X base, X exponent) {
  const X zero = small_constant(base, 0), one = small_constant(base, 1);
  const auto is_unit = (base == one) | (base == zero - one);
  const X power = int_power_of_bits<bits>(base, exponent);
  return select((exponent < zero) & !is_unit, zero, power);
}

/// Few exponents are as large as a number has bits: 2 to such a power is 0.
template <int bits, Lane X>
constexpr X int_power(X base, X exponent) {
  constexpr int few = std::bit_width(unsigned{bits}) - 1;
  const X rest = exponent & small_constant(base, -bits);
  return if_any(rest != small_constant(base, 0), int_power_of_bits<few>(base, exponent),
                [&] { return int_power_of_any<bits>(base, exponent); });
}

template <Lane X>
constexpr X int_power_of_width(X base, X exponent) {
  if constexpr (std::is_same_v<Element<X>, void>) {
    switch (size_of(base.type)) {
      case 1:
        return int_power<8>(base, exponent);
      case 2:
        return int_power<16>(base, exponent);
      case 4:
        return int_power<32>(base, exponent);
      default:
        return int_power<64>(base, exponent);
    }
  } else {
    return int_power<static_cast<int>(8 * sizeof(Element<X>))>(base, exponent);
  }
}

/// The exponents that are worth loops of their own.
inline constexpr std::array simple_integer_exponents = {2.0, 3.0, 4.0};

template <double y, Lane X>
constexpr X integer_pow_at(X x) {
  const X square = x * x;
  if constexpr (y == 2) return square;
  return square * (y == 3 ? x : square);
}

}  // namespace math

/// Integers: base^exponent modulo 2^width; 0 for a negative exponent, but for bases 1 and -1.
template <Lane X>
constexpr X integer_pow(X base, X exponent) {
  return math::int_power_of_width(base, exponent);
}

}  // namespace nitinol
