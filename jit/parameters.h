// What a compiled function's parameters and results may be, and how their tensors are exchanged.
#pragma once

#include "core/reflect.h"

#include <cstdint>
#include <tuple>
#include <type_traits>

#pragma GCC visibility push(default)

namespace nitinol::jit {

/// Calls `change(tensor)` for every tensor, in order.
template <class Change>
struct TensorChanger {
  Change change;
  void tensor(Tensor& tensor) { change(tensor); }
  void variable(const Variable&) {}
  void scalar(const Scalar&) {}
  void fixed(uint64_t) {}
};

/// Puts stand-ins in the place of tensors and Scalars, in order.
struct StandInPlacer {
  const Tensor* next_tensor;
  const Tensor* next_scalar;
  void tensor(Tensor& tensor) { tensor = *next_tensor++; }
  void variable(const Variable&) {}
  void scalar(Scalar& scalar) { scalar.set_traced(*next_scalar++); }
  void fixed(uint64_t) {}
};

/// A copy of `argument` that holds stand-ins; the argument itself where it holds neither tensors
/// nor Scalars.
template <class T>
decltype(auto) with_stand_ins(T& argument, StandInPlacer& placer) {
  using Plain = std::remove_cvref_t<T>;
  if constexpr (reflection::contains<Tensor, Plain>() || reflection::contains<Scalar, Plain>()) {
    Plain copy = argument;
    visit_leaves(copy, placer);
    return copy;
  } else {
    return (argument);  // in parentheses: a reference
  }
}

/// Parameter types of a callable whose call operator is not a template.
template <class F>
struct Parameters {
  static constexpr bool is_known = false;
};
template <class R, class... P>
struct Parameters<R (*)(P...)> {
  static constexpr bool is_known = true;
  static constexpr bool is_const = true;
  using Types = std::tuple<P...>;
};
template <class C, class R, class... P>
struct Parameters<R (C::*)(P...) const> : Parameters<R (*)(P...)> {};
template <class C, class R, class... P>
struct Parameters<R (C::*)(P...)> : Parameters<R (*)(P...)> {
  static constexpr bool is_const = false;
};
template <class F>
requires requires {
  &F::operator();
}
struct Parameters<F> : Parameters<decltype(&F::operator())> {};

/// A parameter through which the function could change the caller's tensors, unseen by the trace.
template <class P>
constexpr bool can_change_behind_the_trace() {
  using Plain = std::remove_cvref_t<P>;
  if constexpr (std::is_pointer_v<Plain>) {
    return true;
  } else if constexpr (std::is_lvalue_reference_v<P> &&
                       !std::is_const_v<std::remove_reference_t<P>>) {
    return reflection::contains<Tensor, Plain>() || reflection::contains<Scalar, Plain>();
  } else {
    return false;
  }
}

/// What a generic function gets for an argument given as A.
template <class A>
using GenericParameter =
    std::conditional_t<can_change_behind_the_trace<A&&>(), const std::remove_reference_t<A>&, A&&>;

}  // namespace nitinol::jit

#pragma GCC visibility pop
