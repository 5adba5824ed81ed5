// What a compiled function's parameters and results may be, and how their tensors are exchanged.
#pragma once

#include "core/reflect.h"
#include "jit/leaves.h"

#include <cstdint>
#include <tuple>
#include <type_traits>

#pragma GCC visibility push(default)

namespace nitinol::jit {

/// The leaves of arguments or results, by address.
struct LeafCollector {
  Leaves& leaves;
  void tensor(const Tensor& tensor) {
    if (tensor.is_defined())
      leaves.tensors.push_back(&tensor);
    else
      leaves.undefined.push_back(leaves.tensors.size());
  }
  void variable(const Variable& variable) {
    leaves.variables.push_back(&variable);
    leaves.gradients.push_back(gradient_state(variable));
  }
  void scalar(const Scalar& scalar) { leaves.scalars.push_back(&scalar); }
  void fixed(uint64_t bits) { leaves.fixed.push_back(bits); }
};

/// Calls `change(tensor)` for every defined tensor, in order.
template <class Change>
struct TensorChanger {
  Change change;
  void tensor(Tensor& tensor) {
    if (tensor.is_defined()) change(tensor);
  }
  void variable(const Variable&) {}
  void scalar(const Scalar&) {}
  void fixed(uint64_t) {}
};

/// Puts stand-ins in the place of defined tensors and Scalars, in order.
struct StandInPlacer {
  const Tensor* next_tensor;
  const Tensor* next_scalar;
  void tensor(Tensor& tensor) {
    if (tensor.is_defined()) tensor = *next_tensor++;
  }
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
  static constexpr bool is_const = true;
};
template <bool is_const_callable, class... P>
struct KnownParameters {
  static constexpr bool is_known = true;
  static constexpr bool is_const = is_const_callable;
  using Types = std::tuple<P...>;
};
template <class R, class... P>
struct Parameters<R (*)(P...)> : KnownParameters<true, P...> {};
template <class R, class... P>
struct Parameters<R (*)(P...) noexcept> : KnownParameters<true, P...> {};

/// The same of a call operator.
template <class M>
struct OperatorParameters {
  static constexpr bool is_known = false;
  static constexpr bool is_const = true;
};
template <class C, class R, class... P>
struct OperatorParameters<R (C::*)(P...) const> : KnownParameters<true, P...> {};
template <class C, class R, class... P>
struct OperatorParameters<R (C::*)(P...) const noexcept> : KnownParameters<true, P...> {};
template <class C, class R, class... P>
struct OperatorParameters<R (C::*)(P...)> : KnownParameters<false, P...> {};
template <class C, class R, class... P>
struct OperatorParameters<R (C::*)(P...) noexcept> : KnownParameters<false, P...> {};
template <class F>
requires requires {
  &F::operator();
}
struct Parameters<F> : OperatorParameters<decltype(&F::operator())> {};

/// A std::tuple of the parameter types, or void if they are not known.
template <class F>
struct ParameterTypes {
  using Type = void;
};
template <class F>
requires(Parameters<F>::is_known) struct ParameterTypes<F> {
  using Type = typename Parameters<F>::Types;
};

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
