// The scalar instructions on native values: what Num computes with, and the interpreter.
//
// Written so that no result is undefined in C++ and compilers can vectorise every one of them
// (but integer division). Integers are computed unsigned, and at least 32 bits wide, because
// C++ would promote small ones to signed int.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace nitinol::native {

template <class T>
concept Float = std::is_floating_point_v<T>;
template <class T>
concept Int = std::is_integral_v<T> && !std::is_same_v<T, bool>;

/// Unsigned, and at least 32 bits wide.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

/// The unsigned type of the same size.
template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 1, uint8_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;

// clang-format off
template <Float T> constexpr T add(T a, T b) { return a + b; }
template <Float T> constexpr T sub(T a, T b) { return a - b; }
template <Float T> constexpr T mul(T a, T b) { return a * b; }
template <Float T> constexpr T div(T a, T b) { return a / b; }
template <Float T> constexpr T neg(T a) { return -a; }
template <Int T> constexpr T add(T a, T b) { return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b)); }
template <Int T> constexpr T sub(T a, T b) { return static_cast<T>(static_cast<Wide<T>>(a) - static_cast<Wide<T>>(b)); }
template <Int T> constexpr T mul(T a, T b) { return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b)); }
template <Int T> constexpr T neg(T a) { return sub(T{0}, a); }
inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float abs(float a) { return __builtin_fabsf(a); }
inline double abs(double a) { return __builtin_fabs(a); }
template <Int T> constexpr T abs(T a) { return a < T{0} ? neg(a) : a; }
inline float sqrt(float a) { return __builtin_sqrtf(a); }
inline double sqrt(double a) { return __builtin_sqrt(a); }
inline float floor(float a) { return __builtin_floorf(a); }
inline double floor(double a) { return __builtin_floor(a); }
inline float ceil(float a) { return __builtin_ceilf(a); }
inline double ceil(double a) { return __builtin_ceil(a); }
inline float trunc(float a) { return __builtin_truncf(a); }
inline double trunc(double a) { return __builtin_trunc(a); }
inline float round_even(float a) { return __builtin_rintf(a); }
inline double round_even(double a) { return __builtin_rint(a); }
template <Int T> constexpr T bit_and(T a, T b) { return static_cast<T>(a & b); }
template <Int T> constexpr T bit_or(T a, T b) { return static_cast<T>(a | b); }
template <Int T> constexpr T bit_xor(T a, T b) { return static_cast<T>(a ^ b); }
template <Int T> constexpr T bit_not(T a) { return static_cast<T>(~a); }
// clang-format on

template <Int T>
constexpr int masked_count(T count) {
  return static_cast<int>(static_cast<Wide<T>>(count) & (sizeof(T) * 8 - 1));
}
template <Int T>
constexpr T shl(T a, T count) {
  return static_cast<T>(static_cast<Wide<T>>(a) << masked_count(count));
}
template <Int T>
constexpr T shr(T a, T count) {
  return static_cast<T>(a >> masked_count(count));
}

template <Int T>
constexpr T int_div(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T{-1}) return neg(a);
  }
  return static_cast<T>(a / b);
}
template <Int T>
constexpr T int_rem(T a, T b) {
  if constexpr (std::is_signed_v<T>) {
    if (b == T{-1}) return T{0};
  }
  return static_cast<T>(a % b);
}

/// Four 32-bit products rather than a 128-bit one, which vector units lack.
constexpr uint64_t mul_high(uint64_t a, uint64_t b) {
  const uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  const uint64_t middle = a1 * b0 + (a0 * b0 >> 32);
  return a1 * b1 + (middle >> 32) + ((a0 * b1 + (middle & 0xffffffff)) >> 32);
}
constexpr int64_t mul_high(int64_t a, int64_t b) {
  uint64_t high = mul_high(static_cast<uint64_t>(a), static_cast<uint64_t>(b));
  high -= (a < 0 ? static_cast<uint64_t>(b) : 0) + (b < 0 ? static_cast<uint64_t>(a) : 0);
  return static_cast<int64_t>(high);
}
template <Int T>
requires(sizeof(T) < 8) constexpr T mul_high(T a, T b) {
  using Double = std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>;
  return static_cast<T>(static_cast<Double>(a) * static_cast<Double>(b) >> (sizeof(T) * 8));
}

/// Whether all values of To are also values of From and of int32_t.
template <class To, class From>
inline constexpr bool fits_between = sizeof(To) < 4 ||
                                     (std::is_same_v<To, int32_t> && std::is_same_v<From, double>);

/// Float to integer: only values in range reach the cast, which is undefined for others.
template <Int To, Float From>
constexpr To saturate(From a) {
  using Limits = std::numeric_limits<To>;
  if constexpr (fits_between<To, From>) {
    // The least of vector code: conditions and selects of one width. All ask for `a`: g++ 12 makes
    // more of them where one looks at what another selected.
    constexpr auto low = static_cast<From>(Limits::min()), high = static_cast<From>(Limits::max());
    const From number = a == a ? a : From{0};
    const From above = a < low ? low : number;
    const From inside = high < a ? high : above;
    return static_cast<To>(static_cast<int32_t>(inside));
  } else {
    constexpr auto bound = static_cast<From>(Bits<To>{1} << (sizeof(To) * 8 - 1));
    constexpr From low = std::is_signed_v<To> ? -bound : From{0};
    constexpr From high = std::is_signed_v<To> ? bound : 2 * bound;
    const bool fits = (a >= low) & (a < high);
    const To inside = static_cast<To>(fits ? a : From{0});
    return a >= high ? Limits::max() : (a < low ? Limits::min() : inside);
  }
}

template <class To, class From>
constexpr To convert(From a) {
  if constexpr (std::is_same_v<To, From>)
    return a;
  else if constexpr (std::is_same_v<To, bool>)
    return a != From{0};
  else if constexpr (std::is_same_v<From, bool>)
    return a ? To{1} : To{0};
  else if constexpr (Int<To> && Float<From>)
    return saturate<To>(a);
  else
    return static_cast<To>(a);
}

template <class To, class From>
constexpr To bitcast(From a) {
  return std::bit_cast<To>(a);
}

}  // namespace nitinol::native
