// Vectors of the compiler, as lanes that formulas are written over.
#pragma once

#include "core/joins.h"

#include <array>
#include <bit>
#include <type_traits>
#include <utility>

namespace nitinol::host {

/// A vector register (or several) of T.
template <class T, int bytes>
struct VectorOf {
  using Type [[gnu::vector_size(bytes)]] = T;
  using Anywhere [[gnu::vector_size(bytes), gnu::aligned(1), gnu::may_alias]] = T;
  Type value;  // a member keeps the attribute, which a template argument loses

  static VectorOf all(T x) { return {x - Type{}}; }
  // Not by memcpy, which g++ cuts into smaller pieces that the next instruction must wait for.
  static VectorOf load(const T* from) { return {*reinterpret_cast<const Anywhere*>(from)}; }
  void store(T* to) const { *reinterpret_cast<Anywhere*>(to) = value; }

  /// What comparisons give: all bits of an element, or none.
  struct Mask {
    decltype(Type{} < Type{}) value;
  };
  /// Integers wrap, which the compiler knows of unsigned ones alone.
  using Wrapping = std::conditional_t<native::Float<T>, T, native::Bits<T>>;
  using Sum [[gnu::vector_size(bytes)]] = Wrapping;

  // clang-format off
  friend VectorOf operator+(const VectorOf& a, const VectorOf& b) { return {(Type)((Sum)a.value + (Sum)b.value)}; }
  friend VectorOf operator*(const VectorOf& a, const VectorOf& b) { return {(Type)((Sum)a.value * (Sum)b.value)}; }
  friend VectorOf operator&(const VectorOf& a, const VectorOf& b) { return {a.value & b.value}; }
  friend VectorOf operator|(const VectorOf& a, const VectorOf& b) { return {a.value | b.value}; }
  friend Mask operator==(const VectorOf& a, const VectorOf& b) { return {a.value == b.value}; }
  friend Mask operator!=(const VectorOf& a, const VectorOf& b) { return {a.value != b.value}; }
  friend Mask operator<(const VectorOf& a, const VectorOf& b) { return {a.value < b.value}; }
  friend Mask operator>(const VectorOf& a, const VectorOf& b) { return {a.value > b.value}; }
  friend VectorOf select(const Mask& c, const VectorOf& a, const VectorOf& b) { return {c.value ? a.value : b.value}; }
  // clang-format on
};
template <class T, int bytes>
using Vector = typename VectorOf<T, bytes>::Type;

template <class To, class From, int bytes>
VectorOf<To, bytes> bitcast(const VectorOf<From, bytes>& a) {
  return {(Vector<To, bytes>)a.value};
}

/// Calls f(i) for each i in [0, n), a constant: arrays at such an index are registers.
template <std::size_t n, class F>
inline void for_each_index(F f) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (f(std::integral_constant<std::size_t, i>{}), ...);
  }
  (std::make_index_sequence<n>{});
}

/// Joins lane l with lane l + half, halving until one is left, which it gives.
template <Combine c, int half, class T, int bytes>
inline T fold_lanes(const VectorOf<T, bytes>& lanes) {
  constexpr int count = bytes / static_cast<int>(sizeof(T));
  if constexpr (half == 0) {
    return lanes.value[0];
  } else {
    const auto upper = [&]<int... lane>(std::integer_sequence<int, lane...>) {
      return VectorOf<T, bytes>{
          __builtin_shufflevector(lanes.value, lanes.value, (lane + half) % count...)};
    };
    return fold_lanes<c, half / 2>(join<c>(lanes, upper(std::make_integer_sequence<int, count>{})));
  }
}

/// The same for all lanes of a vector; wide registers by halves first.
template <Combine c, class T, int bytes>
inline T fold_vector(const VectorOf<T, bytes>& lanes) {
  if constexpr (bytes > 16) {
    const auto halves = std::bit_cast<std::array<VectorOf<T, bytes / 2>, 2>>(lanes);
    return fold_vector<c>(join<c>(halves[0], halves[1]));
  } else {
    return fold_lanes<c, bytes / static_cast<int>(sizeof(T)) / 2>(lanes);
  }
}

}  // namespace nitinol::host

namespace nitinol {

template <class T, int bytes>
struct LaneTraits<host::VectorOf<T, bytes>> {
  using Element = T;
  template <class U>
  using Rebind =
      host::VectorOf<U, bytes / static_cast<int>(sizeof(T)) * static_cast<int>(sizeof(U))>;
};

}  // namespace nitinol
