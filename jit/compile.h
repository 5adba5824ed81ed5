// compile(f): the same function, recorded, fused and compiled for each signature it is called with.
#pragma once

#include "core/callable.h"
#include "core/reflect.h"
#include "jit/compiled_function.h"
#include "jit/explain.h"
#include "jit/parameters.h"
#include "jit/stance.h"
#include "jit/typed_caller.h"
#include "tracer/recorder.h"

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#pragma GCC visibility push(default)

namespace nitinol {

namespace jit {

/// A function of any type, for one kind of pointer.
class HeldFunction {
 public:
  virtual ~HeldFunction() = default;
};
template <class F>
class Held final : public HeldFunction {
 public:
  explicit Held(F f) : function(std::move(f)) {}
  F function;
};

/// What Compiled<F> is but for arguments in braces.
template <class F>
class CompiledCall {
 public:
  CompiledCall(F function, CompileOptions options)
      : held_(static_cast<HeldFunction*>(new Held<F>(std::move(function)))),
        compiled_(std::make_shared<CompiledFunction>(std::move(options), Parameters<F>::is_const)) {
    check_callable("compile", held().function);
  }

  /// Calls the function: recorded, by a Plan, or eagerly; explain() tells. Throws what the function
  /// throws.
  template <class... A>
  auto operator()(A&&... arguments) const {
    return dispatch(Mode::compiled, std::forward<A>(arguments)...);
  }
  /// Calls the function as written.
  template <class... A>
  // NOLINTNEXTLINE(modernize-use-nodiscard): may return nothing, or be called for its effects
  auto eager(A&&... arguments) const {
    return dispatch(Mode::eager, std::forward<A>(arguments)...);
  }
  /// Overrides the thread's and the process's stance for this function.
  void set_stance(Stance stance) const {
    check_stance("set_stance", stance);
    compiled_->set_stance(static_cast<int>(stance));
  }
  [[nodiscard]] Explanation explain() const { return compiled_->explain(); }

 private:
  enum class Mode : uint8_t { compiled, eager };
  using Known = Parameters<F>;

  // NOLINTBEGIN(modernize-use-nodiscard): as for eager
  template <class... A>
  auto dispatch(Mode mode, A&&... arguments) const {
    if constexpr (Known::is_known) {
      return convert(mode, static_cast<typename Known::Types*>(nullptr),
                     std::forward<A>(arguments)...);
    } else {
      return call<GenericParameter<A>...>(mode, std::forward<A>(arguments)...);
    }
  }

  template <class... P, class... A>
  auto convert(Mode mode, std::tuple<P...>* types, A&&... arguments) const {
    static_assert((!can_change_behind_the_trace<P>() && ...),
                  "compile(): a parameter that is a pointer, a Tensor& or a struct with Tensors by "
                  "mutable reference cannot be compiled: the caller's value would change behind "
                  "the trace. Take a const reference and return the new value, or hold it in a "
                  "Variable.");
    if constexpr (std::conjunction_v<std::bool_constant<(sizeof...(A) < sizeof...(P))>,
                                     std::is_invocable<F&, A...>>) {
      return with_defaults(mode, types, std::index_sequence_for<A...>(),
                           std::forward<A>(arguments)...);
    } else {
      static_assert(sizeof...(P) == sizeof...(A),
                    "compile(): called with another number of arguments than f takes. A pointer to "
                    "a function does not know its default arguments: give all of them, or wrap the "
                    "call, compile([](const Tensor& x) { return f(x); }).");
      return call<P...>(mode, std::forward<A>(arguments)...);
    }
  }
  /// The first of the parameters; the function itself fills in the others.
  template <class Types, std::size_t... i, class... A>
  auto with_defaults(Mode mode, Types*, std::index_sequence<i...>, A&&... arguments) const {
    return call<std::tuple_element_t<i, Types>...>(mode, std::forward<A>(arguments)...);
  }

  /// Arguments as the function's own parameter types (implicit conversions happen at this call).
  template <class... P>
  auto call(Mode mode, P... arguments) const {
    using Returned = std::invoke_result_t<F&, P...>;
    using Result =
        std::conditional_t<std::is_void_v<Returned>, std::monostate, std::decay_t<Returned>>;
    OwnCaller<Result, P...> caller(held(), arguments...);
    if (is_watched()) {
      compiled_->call_inlined(caller);
    } else {
      Leaves leaves;
      [[maybe_unused]] LeafCollector collector{leaves};
      (visit_leaves(std::as_const(arguments), collector), ...);
      mode == Mode::eager ? compiled_->call_eagerly(leaves, caller)
                          : compiled_->call(leaves, caller);
    }
    if constexpr (!std::is_void_v<Returned>) return std::move(*caller.result);
  }
  // NOLINTEND(modernize-use-nodiscard)

  template <class Result, class... P>
  class OwnCaller final : public TypedCaller<Result, P...> {
   public:
    explicit OwnCaller(Held<F>& held, std::remove_reference_t<P>&... arguments)
        : TypedCaller<Result, P...>(arguments...), held_(held) {}

   private:
    void call(P&&... arguments) override {
      if constexpr (std::is_void_v<std::invoke_result_t<F&, P...>>) {
        held_.function(static_cast<P&&>(arguments)...);
        this->result.emplace();
      } else {
        this->result.emplace(held_.function(static_cast<P&&>(arguments)...));
      }
    }

    Held<F>& held_;
  };

  [[nodiscard]] Held<F>& held() const { return static_cast<Held<F>&>(*held_); }

  std::shared_ptr<HeldFunction> held_;
  std::shared_ptr<CompiledFunction> compiled_;
};

}  // namespace jit

/// A function that compiles itself; copies share everything. Call it like the function it wraps.
template <class F, class Types = typename jit::ParameterTypes<F>::Type>
class Compiled : public jit::CompiledCall<F> {
 public:
  using jit::CompiledCall<F>::CompiledCall;
};
/// One whose parameters are known also takes arguments in braces.
template <class F, class... P>
class Compiled<F, std::tuple<P...>> : public jit::CompiledCall<F> {
  using Base = jit::CompiledCall<F>;

 public:
  using Base::Base;
  using Base::operator();
  using Base::eager;
  auto operator()(P... arguments) const { return Base::operator()(static_cast<P&&>(arguments)...); }
  // NOLINTNEXTLINE(modernize-use-nodiscard): may return nothing, or be called for its effects
  auto eager(P... arguments) const { return Base::eager(static_cast<P&&>(arguments)...); }
};

/// Wraps `function`: see docs and the README for the contract. Arguments and results: Tensor
/// (undefined ones too), Scalar, std::vector/array/optional/pair/tuple, plain structs of them,
/// structs of Variables by reference; numbers, enums and strings are fixed parts of the signature.
/// Throws Error(value) for a null pointer or an empty std::function.
template <class F>
requires(!std::is_member_function_pointer_v<std::decay_t<F>>)
    [[nodiscard]] Compiled<std::decay_t<F>> compile(F&& function, CompileOptions options = {}) {
  return Compiled<std::decay_t<F>>(std::forward<F>(function), std::move(options));
}
/// A function of a tensor whose name is overloaded, such as tanh.
[[nodiscard]] inline Compiled<Tensor (*)(const Tensor&)> compile(Tensor (*function)(const Tensor&),
                                                                 CompileOptions options = {}) {
  return {function, std::move(options)};
}
/// A member function, called with the object first: `compile(&Model::loss)(model, x)`.
template <class C, class R, class... P>
[[nodiscard]] auto compile(R (C::*function)(P...) const, CompileOptions options = {}) {
  if (function == nullptr) throw_empty_function("compile");
  return compile(
      [function](const C& object, P... arguments) -> R {
        return (object.*function)(static_cast<P&&>(arguments)...);
      },
      std::move(options));
}
template <class C, class R, class... P>
[[nodiscard]] auto compile(R (C::*function)(P...), CompileOptions options = {}) {
  if (function == nullptr) throw_empty_function("compile");
  return compile(
      [function](C& object, P... arguments) -> R {
        return (object.*function)(static_cast<P&&>(arguments)...);
      },
      std::move(options));
}

}  // namespace nitinol

#pragma GCC visibility pop
