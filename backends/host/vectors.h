// Vectors of the compiler, and joins.h on them.
#pragma once

#include "backends/host/joins.h"

#include <array>
#include <bit>
#include <type_traits>

namespace nitinol::host {

/// A vector register (or several) of T.
template <class T, int bytes>
struct VectorOf {
  using Type [[gnu::vector_size(bytes)]] = T;
  using Anywhere [[gnu::vector_size(bytes), gnu::aligned(1), gnu::may_alias]] = T;
  Type value;  // a member keeps the attribute, which a template argument loses

  // Not by memcpy, which g++ cuts into smaller pieces that the next instruction must wait for.
  static VectorOf load(const T* from) { return {*reinterpret_cast<const Anywhere*>(from)}; }
  void store(T* to) const { *reinterpret_cast<Anywhere*>(to) = value; }
};
template <class T, int bytes>
using Vector = typename VectorOf<T, bytes>::Type;

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

/// Joins lane l with lane l + n/2 of a vector's n lanes, halving until one is left, which it gives.
template <Combine c, class T, int bytes>
inline Element<T> fold_vector(const VectorOf<Element<T>, bytes>& lanes) {
  using E = Element<T>;
  if constexpr (bytes > 16) {
    auto halves = std::bit_cast<std::array<VectorOf<E, bytes / 2>, 2>>(lanes);
    join_into<c, T, bytes / 2>(halves[0], halves[1]);
    return fold_vector<c, T, bytes / 2>(halves[0]);
  } else {
    using Index = std::conditional_t<native::Float<E>, native::Bits<E>, E>;
    constexpr int count = bytes / static_cast<int>(sizeof(E));
    VectorOf<E, bytes> left = lanes;
#pragma GCC unroll 4
    for (int half = count / 2; half > 0; half /= 2) {
      Vector<Index, bytes> upper = {};
      for (int j = 0; j < count; ++j) upper[j] = static_cast<Index>((j + half) % count);
      join_into<c, T, bytes>(left, {__builtin_shuffle(left.value, upper)});
    }
    return left.value[0];
  }
}

}  // namespace nitinol::host
