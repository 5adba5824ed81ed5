// Num: a native scalar that computes exactly what the scalar instructions say.
//
// A formula is a generic lambda over lanes, `[](auto x) { return 1 / (1 + exp(-x)); }`, and a lane
// is a Num (native loops), an Expr (records a program) or a Probe (core/probe.h). Raw C++ scalars
// never appear: a literal takes the type of the lane beside it, so nothing is promoted.
//
// if_any and vector loops: a branch would keep compilers from vectorising. So loops first run with
// Path::fast, which skips the slow parts but carries a flag telling that one was needed; a block
// of lanes with a flag set is computed again with Path::exact, which computes both sides and
// selects. Without if_any in the formula the flag is a constant and vanishes.
//
// either() has sides that whole blocks need or do not. Loops look first, which computes only its
// condition, and then run the side that a block needs, or both.
#pragma once

#include "core/expr.h"
#include "core/native.h"
#include "core/scalar.h"
#include "core/tables.h"

#include <concepts>
#include <cstdint>
#include <type_traits>

namespace nitinol {

enum class Path : uint8_t {
  exact,  ///< if_any selects between both sides: always right
  fast,   ///< if_any gives the fast side; `flag` says whether that was wrong
  // What loops need to know of the condition of either() is in `flag`; values mean nothing.
  look,          ///< as far as that is cheap
  look_closely,  ///< in any case
  first,         ///< as fast, where the condition holds in all lanes
  second,        ///< as fast, where it holds in none
};

/// What a look found, joined by | over the lanes of a block.
struct Look {
  static constexpr uint32_t holds = 1, fails = 2, is_open = 4;
};

/// Whether a slow path was skipped; empty on Path::exact.
template <Path P>
struct SlowFlag {
  uint32_t needed = 0;  ///< not a bool, which would keep the loops from being vectorised
  constexpr SlowFlag operator|(SlowFlag other) const { return {needed | other.needed}; }
};
template <>
struct SlowFlag<Path::exact> {
  constexpr SlowFlag operator|(SlowFlag) const { return {}; }
};

template <class T, Path P = Path::exact>
struct Num;

/// A condition: what comparisons give. Combine with & | ^ ! (never && ||).
template <Path P>
struct Num<bool, P> {
  bool value;
  [[no_unique_address]] SlowFlag<P> flag = {};

  Num() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): literals
  constexpr Num(std::same_as<bool> auto v) : value(v) {}
  constexpr Num(bool v, SlowFlag<P> f) : value(v), flag(f) {}

  // clang-format off
  friend constexpr Num operator&(Num a, Num b) { return {static_cast<bool>(a.value & b.value), a.flag | b.flag}; }
  friend constexpr Num operator|(Num a, Num b) { return {static_cast<bool>(a.value | b.value), a.flag | b.flag}; }
  friend constexpr Num operator^(Num a, Num b) { return {static_cast<bool>(a.value ^ b.value), a.flag | b.flag}; }
  friend constexpr Num operator==(Num a, Num b) { return {a.value == b.value, a.flag | b.flag}; }
  friend constexpr Num operator!=(Num a, Num b) { return {a.value != b.value, a.flag | b.flag}; }
  friend constexpr Num operator!(Num a) { return {!a.value, a.flag}; }
  friend constexpr Num operator~(Num a) { return {!a.value, a.flag}; }
  friend constexpr Num select(Num c, Num a, Num b) { return {c.value ? a.value : b.value, c.flag | a.flag | b.flag}; }
  // clang-format on
};

/// A literal that a Num<T> accepts: integers do not take fractions.
template <class L, class T>
concept LiteralFor = std::is_arithmetic_v<L> && !std::is_same_v<L, bool> &&
                     (native::Float<T> || std::is_integral_v<L>);

/// One lane of a native loop. T: float, double or an integer type of 8 to 64 bits.
template <class T, Path P>
struct Num {
  using Bool = Num<bool, P>;

  T value;
  [[no_unique_address]] SlowFlag<P> flag = {};

  Num() = default;
  template <LiteralFor<T> L>
  // NOLINTNEXTLINE(google-explicit-constructor): literals
  constexpr Num(L literal) : value(static_cast<T>(literal)) {}
  constexpr Num(T v, SlowFlag<P> f) : value(v), flag(f) {}

  // clang-format off
  friend constexpr Num operator+(Num a, Num b) { return {native::add(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Num operator-(Num a, Num b) { return {native::sub(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Num operator*(Num a, Num b) { return {native::mul(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Num operator-(Num a) { return {native::neg(a.value), a.flag}; }
  friend constexpr Num operator/(Num a, Num b) {
    if constexpr (native::Float<T>) return {native::div(a.value, b.value), a.flag | b.flag};
    else return {native::int_div(a.value, b.value), a.flag | b.flag};
  }
  friend constexpr Num operator%(Num a, Num b) requires native::Int<T> { return {native::int_rem(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Num operator&(Num a, Num b) requires native::Int<T> { return {native::bit_and(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Num operator|(Num a, Num b) requires native::Int<T> { return {native::bit_or(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Num operator^(Num a, Num b) requires native::Int<T> { return {native::bit_xor(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Num operator~(Num a) requires native::Int<T> { return {native::bit_not(a.value), a.flag}; }
  friend constexpr Num operator<<(Num a, Num b) requires native::Int<T> { return {native::shl(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Num operator>>(Num a, Num b) requires native::Int<T> { return {native::shr(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Num mul_high(Num a, Num b) requires native::Int<T> { return {native::mul_high(a.value, b.value), a.flag | b.flag}; }
  friend constexpr Bool operator==(Num a, Num b) { return {a.value == b.value, a.flag | b.flag}; }
  friend constexpr Bool operator!=(Num a, Num b) { return {a.value != b.value, a.flag | b.flag}; }
  friend constexpr Bool operator<(Num a, Num b) { return {a.value < b.value, a.flag | b.flag}; }
  friend constexpr Bool operator<=(Num a, Num b) { return {a.value <= b.value, a.flag | b.flag}; }
  friend constexpr Bool operator>(Num a, Num b) { return {b.value < a.value, a.flag | b.flag}; }
  friend constexpr Bool operator>=(Num a, Num b) { return {b.value <= a.value, a.flag | b.flag}; }
  friend constexpr Num fma(Num a, Num b, Num c) requires native::Float<T> { return {native::fma(a.value, b.value, c.value), a.flag | b.flag | c.flag}; }
  friend constexpr Num abs(Num a) { return {native::abs(a.value), a.flag}; }
  friend constexpr Num sqrt(Num a) requires native::Float<T> { return {native::sqrt(a.value), a.flag}; }
  friend constexpr Num floor(Num a) requires native::Float<T> { return {native::floor(a.value), a.flag}; }
  friend constexpr Num ceil(Num a) requires native::Float<T> { return {native::ceil(a.value), a.flag}; }
  friend constexpr Num trunc(Num a) requires native::Float<T> { return {native::trunc(a.value), a.flag}; }
  friend constexpr Num round_even(Num a) requires native::Float<T> { return {native::round_even(a.value), a.flag}; }
  friend constexpr Num select(Bool c, Num a, Num b) { return {c.value ? a.value : b.value, c.flag | a.flag | b.flag}; }
  // clang-format on
};

/// Saturating, wrapping or rounding conversion, as ScalarOp::convert says.
template <class To, class From, Path P>
constexpr Num<To, P> convert(Num<From, P> a) {
  return {native::convert<To>(a.value), a.flag};
}

/// The same bits as a type of the same size.
template <class To, class From, Path P>
constexpr Num<To, P> bitcast(Num<From, P> a) {
  return {native::bitcast<To>(a.value), a.flag};
}

/// Entry `index` of a constant table; the index is always in range.
template <TableId id, Path P>
Num<uint32_t, P> table(Num<uint32_t, P> index) {
  return {table_words<id>[index.value], index.flag};
}

/// `fast` where the condition is false, `slow()` where it is true.
template <class T, Path P, std::invocable Slow>
constexpr Num<T, P> if_any(Num<bool, P> condition, Num<T, P> fast, Slow&& slow) {
  if constexpr (P == Path::exact) {
    return select(condition, slow(), fast);
  } else {
    return {fast.value, fast.flag | condition.flag | SlowFlag<P>{condition.value ? 1U : 0U}};
  }
}

/// `common` where the condition is true, `rest()` where it is false: both are computed, as vector
/// loops do not branch.
template <class T, Path P, std::invocable Rest>
constexpr Num<T, P> unless_all(Num<bool, P> condition, Num<T, P> common, Rest&& rest) {
  return select(condition, common, rest());
}

/// Whether `candidate` is true and `test()` too, which is computed only where a candidate is near.
/// For the condition of either().
template <Path P, std::invocable Test>
constexpr Num<bool, P> both(Num<bool, P> candidate, Test&& test) {
  if constexpr (P == Path::look) {
    return {false, {candidate.value ? Look::is_open : 0U}};
  } else if constexpr (P == Path::first || P == Path::second) {
    return P == Path::first;
  } else {
    return candidate & test();
  }
}

/// `first()` where the condition is true, `second()` where it is false. A formula has one at most.
template <class T, Path P, std::invocable First, std::invocable Second>
constexpr Num<T, P> either(Num<T, P> like, Num<bool, P> condition, First&& first, Second&& second) {
  if constexpr (P == Path::look || P == Path::look_closely) {
    return {like.value, condition.flag | SlowFlag<P>{condition.value ? Look::holds : Look::fails}};
  } else if constexpr (P == Path::first) {
    return first();
  } else if constexpr (P == Path::second) {
    return second();
  } else {
    return select(condition, first(), second());
  }
}

/// What is common to the lanes of a formula: Element is the native type, or void for Expr, whose
/// type is known at run time only.
template <class X>
struct LaneTraits;
template <>
struct LaneTraits<Expr> {
  using Element = void;
  template <class>
  using Rebind = Expr;
};
template <class T, Path P>
struct LaneTraits<Num<T, P>> {
  using Element = T;
  template <class U>
  using Rebind = Num<U, P>;
};

/// Num, Expr or Probe: what formulas are written over.
template <class X>
concept Lane = requires {
  typename LaneTraits<X>::Element;
};

template <Lane X>
using Element = typename LaneTraits<X>::Element;

/// The lane type of the same kind with another element type: Num<U> or Expr.
template <Lane X, class U>
using Rebind = typename LaneTraits<X>::template Rebind<U>;

/// A constant of type U among the lanes of `like`.
template <class U, class L>
Expr constant(const Expr& like, L value) {
  return constant(like, scalar_type_of<U>, value);
}
template <class U, class T, Path P, class L>
constexpr Num<U, P> constant(Num<T, P>, L value) {
  return Num<U, P>(static_cast<U>(value));
}

/// on_f32(x) if x is f32, on_f64(x) if f64: how a function chooses its polynomial.
template <Lane X, class F32, class F64>
constexpr auto by_float_type(X x, F32 on_f32, F64 on_f64) {
  if constexpr (std::is_same_v<Element<X>, void>) {
    return x.type == ScalarType::f64 ? on_f64(x) : on_f32(x);
  } else if constexpr (std::is_same_v<Element<X>, double>) {
    return on_f64(x);
  } else {
    static_assert(std::is_same_v<Element<X>, float>, "a floating-point function of an integer");
    return on_f32(x);
  }
}

}  // namespace nitinol
