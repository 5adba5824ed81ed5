// How reductions join two values, each way once: formulas over lanes (core/num.h).
//
// A lane is a Num in plain loops, a vector of the host (backends/host/vectors.h) or an Expr, which
// writes the join as scalar instructions. The reference device alone has a definition of its own
// (backends/reference/joins.h), which the others are compared with.
#pragma once

#include "core/math/compare.h"
#include "core/reduction.h"

#include <limits>
#include <type_traits>

namespace nitinol {

constexpr bool is_extreme(Combine combine) {
  return combine == Combine::maximum || combine == Combine::minimum || is_arg(combine);
}
/// Of the two extremes: the largest value.
constexpr bool takes_largest(Combine combine) {
  return combine == Combine::maximum || combine == Combine::arg_maximum;
}

/// True if reductions join values of T so: conditions by and, or or as extremes, numbers by all
/// others but log_add_exp.
template <Combine c, class T>
inline constexpr bool is_joinable = c != Combine::log_add_exp &&
                                    (is_extreme(c) ||
                                     (c == Combine::logical_or || c == Combine::logical_and) ==
                                         std::is_same_v<T, bool>);

/// Joined with x it gives x, bit for bit; -0 in floating sums.
template <Combine c, class T>
constexpr T neutral_of() {
  using Limits = std::numeric_limits<T>;
  if constexpr (c == Combine::add)
    return static_cast<T>(-0.0);
  else if constexpr (c == Combine::multiply)
    return T{1};
  else if constexpr (takes_largest(c) || c == Combine::logical_or || c == Combine::log_add_exp)
    return Limits::has_infinity ? -Limits::infinity() : Limits::min();
  else
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
}

namespace joins {

template <bool largest, class T, Lane X>
constexpr X extreme_of_floats(const X& a, const X& b) {
  const auto x = bitcast<native::Bits<T>>(a), y = bitcast<native::Bits<T>>(b);
  const X equal = bitcast<T>(largest ? x & y : x | y);  // zeros alone are equal and differ
  const X ordered = select(largest ? a > b : a < b, a, b);
  return select(a != a, a, select(a == b, equal, ordered));
}

/// The larger (smaller); NaN if either is NaN; -0 < +0.
template <bool largest, Lane X>
constexpr X extreme(const X& a, const X& b) {
  return math::by_type(
      a, [&](auto v) { return select(largest ? v > b : v < b, v, b); },
      [&](auto v) { return extreme_of_floats<largest, float>(v, b); },
      [&](auto v) { return extreme_of_floats<largest, double>(v, b); });
}

/// For scans, which include core/join_logarithms.h.
template <Lane X>
constexpr X log_add_exp(const X& a, const X& b);

}  // namespace joins

/// What becomes of a and b. Not for arg_*.
template <Combine c, Lane X>
constexpr X join(const X& a, const X& b) {
  static_assert(!is_arg(c));
  if constexpr (c == Combine::add)
    return a + b;
  else if constexpr (c == Combine::multiply)
    return a * b;
  else if constexpr (c == Combine::logical_or)
    return a | b;
  else if constexpr (c == Combine::logical_and)
    return a & b;
  else if constexpr (c == Combine::log_add_exp)
    return joins::log_add_exp(a, b);
  else
    return joins::extreme<takes_largest(c)>(a, b);
}

/// Whether arg_* take a value for the one that was best so far, of an earlier position: if it is
/// better, or the first NaN. Zeros are equal.
template <Combine c, Lane X>
constexpr auto replaces(const X& value, const X& best) {
  const auto is_better = takes_largest(c) ? value > best : value < best;
  if (!math::is_float_lane(best)) return is_better;
  return (is_better | (value != value)) & (best == best);
}

/// A value and its position along the reduced dimension, i64.
template <class X, class P>
struct Placed {
  X value;
  P position;
};

/// Whether b beats a, wherever both are: as replaces(), and of equals the first wins. A total
/// order, so that the result of arg_* does not depend on the order of joining.
template <Combine c, Lane X, Lane P>
constexpr auto beats(const Placed<X, P>& b, const Placed<X, P>& a) {
  const auto is_better = replaces<c>(b.value, a.value);
  auto are_equal = a.value == b.value;
  if (math::is_float_lane(a.value))
    are_equal = are_equal | ((a.value != a.value) & (b.value != b.value));
  return is_better | (are_equal & (b.position < a.position));
}

/// The one that beats the other. For arg_*.
template <Combine c, Lane X, Lane P>
constexpr Placed<X, P> join(const Placed<X, P>& a, const Placed<X, P>& b) {
  static_assert(is_arg(c));
  const auto takes_b = beats<c>(b, a);
  return {select(takes_b, b.value, a.value), select(takes_b, b.position, a.position)};
}

template <Combine c>
using CombineConstant = std::integral_constant<Combine, c>;

/// Calls f(CombineConstant<combine>()).
template <class F>
constexpr auto with_combine(Combine combine, const F& f) {
  switch (combine) {
    case Combine::add:
      break;
    case Combine::multiply:
      return f(CombineConstant<Combine::multiply>());
    case Combine::maximum:
      return f(CombineConstant<Combine::maximum>());
    case Combine::minimum:
      return f(CombineConstant<Combine::minimum>());
    case Combine::logical_or:
      return f(CombineConstant<Combine::logical_or>());
    case Combine::logical_and:
      return f(CombineConstant<Combine::logical_and>());
    case Combine::arg_maximum:
      return f(CombineConstant<Combine::arg_maximum>());
    case Combine::arg_minimum:
      return f(CombineConstant<Combine::arg_minimum>());
    case Combine::log_add_exp:
      return f(CombineConstant<Combine::log_add_exp>());
  }
  return f(CombineConstant<Combine::add>());
}

/// Calls f(CombineConstant<combine>(), std::type_identity<T>()), T the native type of the
/// reduction's. Throws Error(internal) for a pair that means nothing, such as logical_or of f32.
template <class F>
auto with_reduction(const Reduction& reduction, const F& f) {
  using Result = std::invoke_result_t<F, CombineConstant<Combine::add>, std::type_identity<float>>;
  return with_type(reduction.type, [&]<class T>(T) {
    return with_combine(reduction.combine, [&](auto combine) -> Result {
      if constexpr (is_joinable<combine.value, T>)
        return f(combine, std::type_identity<T>());
      else
        throw_meaningless(reduction);
    });
  });
}

}  // namespace nitinol
