// Vectors of the compiler, and joins.h on them.
#pragma once

#include "backends/host/joins.h"

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
};
template <class T, int bytes>
using Vector = typename VectorOf<T, bytes>::Type;

/// Calls f(i) for each i in [0, n), a constant: arrays at such an index are registers.
template <std::size_t n, class F>
inline void for_each_index(F f) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (f(std::integral_constant<std::size_t, i>{}), ...);
  }
  (std::make_index_sequence<n>{});
}

/// joins.h on vectors; equal bits lane by lane.
template <Combine c, class T, int bytes>
inline void join_into(VectorOf<Element<T>, bytes>& into, const VectorOf<Element<T>, bytes>& from) {
  using V = Vector<Element<T>, bytes>;
  V& a = into.value;
  const V& b = from.value;
  if constexpr (std::is_same_v<T, bool>) {
    constexpr bool is_or = c == Combine::logical_or || c == Combine::maximum;
    if constexpr (is_or)
      a |= b;
    else
      a &= b;
  } else if constexpr (c == Combine::add || c == Combine::multiply) {
    // Unsigned, because integers wrap.
    using U =
        std::conditional_t<native::Float<T>, T,
                           std::make_unsigned_t<std::conditional_t<native::Float<T>, int, T>>>;
    using UV = Vector<U, bytes>;
    const UV x = (UV)a, y = (UV)b;
    a = (V)(c == Combine::add ? x + y : x * y);
  } else {
    constexpr bool largest = c == Combine::maximum;
    const auto takes_a = largest ? a > b : a < b;
    const V ordered = takes_a ? a : b;
    if constexpr (native::Float<T>) {
      using UV = Vector<native::Bits<T>, bytes>;
      const V equal = (V)(largest ? (UV)a & (UV)b : (UV)a | (UV)b);
      const V joined = a == b ? equal : ordered;
      a = a != a ? a : joined;
    } else {
      a = ordered;
    }
  }
}

/// Joins lane l with lane l + half, halving until one is left, which it gives.
template <Combine c, class T, int half, int bytes>
inline Element<T> fold_lanes(VectorOf<Element<T>, bytes> lanes) {
  constexpr int count = bytes / static_cast<int>(sizeof(Element<T>));
  if constexpr (half == 0) {
    return lanes.value[0];
  } else {
    const auto upper = [&]<int... lane>(std::integer_sequence<int, lane...>) {
      return VectorOf<Element<T>, bytes>{
          __builtin_shufflevector(lanes.value, lanes.value, (lane + half) % count...)};
    };
    join_into<c, T, bytes>(lanes, upper(std::make_integer_sequence<int, count>{}));
    return fold_lanes<c, T, half / 2>(lanes);
  }
}

/// The same for all lanes of a vector; wide registers by halves first.
template <Combine c, class T, int bytes>
inline Element<T> fold_vector(const VectorOf<Element<T>, bytes>& lanes) {
  if constexpr (bytes > 16) {
    auto halves = std::bit_cast<std::array<VectorOf<Element<T>, bytes / 2>, 2>>(lanes);
    join_into<c, T, bytes / 2>(halves[0], halves[1]);
    return fold_vector<c, T, bytes / 2>(halves[0]);
  } else {
    return fold_lanes<c, T, bytes / static_cast<int>(sizeof(Element<T>)) / 2>(lanes);
  }
}

}  // namespace nitinol::host
