// Probe: a lane that computes nothing and finds out, at compile time, whether a formula uses
// if_any or either. Loops need to know before they overwrite an input in place.
#pragma once

#include "core/num.h"

#include <cstdint>
#include <type_traits>

namespace nitinol {

template <class T>
struct Probe {
  bool has_slow_path = false, has_sides = false;

  Probe() = default;
  template <class L>
  requires std::is_arithmetic_v<L>
  constexpr Probe(L) {}  // NOLINT(google-explicit-constructor): literals
  struct Found {
    bool slow_path = false, sides = false;
  };
  constexpr explicit Probe(Found found) : has_slow_path(found.slow_path), has_sides(found.sides) {}

  // clang-format off
  friend constexpr Probe operator+(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe operator-(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe operator*(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe operator/(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe operator%(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe operator&(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe operator|(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe operator^(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe operator<<(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe operator>>(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe mul_high(Probe a, Probe b) { return join(a, b); }
  friend constexpr Probe<bool> operator==(Probe a, Probe b) { return join<bool>(a, b); }
  friend constexpr Probe<bool> operator!=(Probe a, Probe b) { return join<bool>(a, b); }
  friend constexpr Probe<bool> operator<(Probe a, Probe b) { return join<bool>(a, b); }
  friend constexpr Probe<bool> operator<=(Probe a, Probe b) { return join<bool>(a, b); }
  friend constexpr Probe<bool> operator>(Probe a, Probe b) { return join<bool>(a, b); }
  friend constexpr Probe<bool> operator>=(Probe a, Probe b) { return join<bool>(a, b); }
  friend constexpr Probe operator-(Probe a) { return a; }
  friend constexpr Probe operator~(Probe a) { return a; }
  friend constexpr Probe operator!(Probe a) { return a; }
  friend constexpr Probe abs(Probe a) { return a; }
  friend constexpr Probe sqrt(Probe a) { return a; }
  friend constexpr Probe floor(Probe a) { return a; }
  friend constexpr Probe ceil(Probe a) { return a; }
  friend constexpr Probe trunc(Probe a) { return a; }
  friend constexpr Probe round_even(Probe a) { return a; }
  friend constexpr Probe fma(Probe a, Probe b, Probe c) { return join(join(a, b), c); }
  friend constexpr Probe select(Probe<bool> c, Probe a, Probe b) { return join<T>(c, join(a, b)); }
  // clang-format on

 private:
  template <class U = T, class A>
  static constexpr Probe<U> join(Probe<A> a, Probe b) {
    return Probe<U>(
        typename Probe<U>::Found{a.has_slow_path || b.has_slow_path, a.has_sides || b.has_sides});
  }
};

template <class To, class From>
constexpr Probe<To> convert(Probe<From> a) {
  return Probe<To>(typename Probe<To>::Found{a.has_slow_path, a.has_sides});
}
template <class To, class From>
constexpr Probe<To> bitcast(Probe<From> a) {
  return convert<To>(a);
}
template <TableId id>
constexpr Probe<uint32_t> table(Probe<uint32_t> index) {
  return index;
}
template <class T, class Slow>
constexpr Probe<T> if_any(Probe<bool>, Probe<T>, Slow&&) {
  return Probe<T>(typename Probe<T>::Found{.slow_path = true});
}
template <class T, class Rest>
constexpr Probe<T> unless_all(Probe<bool> condition, Probe<T> common, Rest&& rest) {
  return select(condition, common, rest());
}
template <class Test>
constexpr Probe<bool> both(Probe<bool> candidate, Test&& test) {
  return candidate & test();
}
template <class T, class First, class Second>
constexpr Probe<T> either(Probe<T>, Probe<bool>, First&& first, Second&& second) {
  static_cast<void>(first() + second());
  return Probe<T>(typename Probe<T>::Found{.slow_path = true, .sides = true});
}
template <class U, class T, class L>
constexpr Probe<U> constant(Probe<T>, L) {
  return {};
}

template <class T>
struct LaneTraits<Probe<T>> {
  using Element = T;
  template <class U>
  using Rebind = Probe<U>;
};

/// Whether the formula F, given arguments of element types A, uses if_any.
template <class F, class... A>
inline constexpr bool has_slow_path = F{}(Probe<A>{}...).has_slow_path;
/// Whether it uses either().
template <class F, class... A>
inline constexpr bool has_sides = F{}(Probe<A>{}...).has_sides;

}  // namespace nitinol
