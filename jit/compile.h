// compile(f): the same function, recorded, fused and compiled for each signature it is called with.
#pragma once

#include "core/reflect.h"
#include "jit/compiled_function.h"
#include "jit/explain.h"
#include "jit/parameters.h"
#include "jit/stance.h"
#include "tracer/recorder.h"

#include <memory>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#pragma GCC visibility push(default)

namespace nitinol {

namespace jit {

/// The leaves of arguments or results, by address.
struct LeafCollector {
  Leaves& leaves;
  void tensor(const Tensor& tensor) { leaves.tensors.push_back(&tensor); }
  void variable(const Variable& variable) { leaves.variables.push_back(&variable); }
  void scalar(const Scalar& scalar) { leaves.scalars.push_back(&scalar); }
  void fixed(uint64_t bits) { leaves.fixed.push_back(bits); }
};

}  // namespace jit

/// A function that compiles itself; copies share everything. Call it like the function it wraps.
template <class F>
class Compiled {
 public:
  Compiled(F function, CompileOptions options)
      : function_(std::make_shared<F>(std::move(function))),
        compiled_(std::make_shared<jit::CompiledFunction>(std::move(options), is_const)) {}

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
  void set_stance(Stance stance) const { compiled_->set_stance(static_cast<int>(stance)); }
  [[nodiscard]] Explanation explain() const { return compiled_->explain(); }

 private:
  enum class Mode : uint8_t { compiled, eager };
  using Parameters = jit::Parameters<F>;

  static constexpr bool const_callable() {
    if constexpr (Parameters::is_known) return Parameters::is_const;
    return true;
  }
  static constexpr bool is_const = const_callable();

  // NOLINTBEGIN(modernize-use-nodiscard): as for eager
  template <class... A>
  auto dispatch(Mode mode, A&&... arguments) const {
    if constexpr (Parameters::is_known) {
      return convert(mode, static_cast<typename Parameters::Types*>(nullptr),
                     std::forward<A>(arguments)...);
    } else {
      return call<jit::GenericParameter<A>...>(mode, std::forward<A>(arguments)...);
    }
  }

  template <class... P, class... A>
  auto convert(Mode mode, std::tuple<P...>*, A&&... arguments) const {
    static_assert((!jit::can_change_behind_the_trace<P>() && ...),
                  "compile(): a parameter that is a pointer, a Tensor& or a struct with Tensors by "
                  "mutable reference cannot be compiled: the caller's value would change behind "
                  "the trace. Take a const reference and return the new value, or hold it in a "
                  "Variable.");
    static_assert(sizeof...(P) == sizeof...(A),
                  "compile(): called with another number of arguments than f takes");
    return call<P...>(mode, std::forward<A>(arguments)...);
  }

  /// Arguments as the function's own parameter types (implicit conversions happen at this call).
  template <class... P>
  auto call(Mode mode, P... arguments) const {
    using Returned = std::invoke_result_t<F&, P...>;
    using Result =
        std::conditional_t<std::is_void_v<Returned>, std::monostate, std::decay_t<Returned>>;
    TypedCaller<Result, P...> caller(*function_, arguments...);
    if (tracer::is_recording()) {
      compiled_->call_inlined(caller);
    } else {
      jit::Leaves leaves;
      [[maybe_unused]] jit::LeafCollector collector{leaves};
      (visit_leaves(std::as_const(arguments), collector), ...);
      mode == Mode::eager ? compiled_->call_eagerly(leaves, caller)
                          : compiled_->call(leaves, caller);
    }
    if constexpr (!std::is_void_v<Returned>) return std::move(*caller.result);
  }
  // NOLINTEND(modernize-use-nodiscard)

  template <class Result, class... P>
  class TypedCaller final : public jit::Caller {
   public:
    explicit TypedCaller(F& function, std::remove_reference_t<P>&... arguments)
        : function_(function), arguments_(arguments...) {}

    std::optional<Result> result;

    void run() override {
      std::apply([&](auto&... argument) { keep(static_cast<P&&>(argument)...); }, arguments_);
    }
    void run_on(std::span<const Tensor> tensors, std::span<const Tensor> scalars) override {
      jit::StandInPlacer placer{tensors.data(), scalars.data()};
      std::apply(
          [&](auto&... argument) {
            // Braces fix the order of evaluation: stand-ins are taken from left to right.
            std::tuple<decltype(jit::with_stand_ins(argument, placer))...> given{
                jit::with_stand_ins(argument, placer)...};
            std::apply([&](auto&... a) { keep(static_cast<P&&>(a)...); }, given);
          },
          arguments_);
    }
    void result_leaves(jit::Leaves& leaves) override {
      jit::LeafCollector collector{leaves};
      visit_leaves(std::as_const(*result), collector);
    }
    void change_result(FunctionRef<void(Tensor&)> change) override {
      jit::TensorChanger changer{change};
      visit_leaves(*result, changer);
    }
    std::vector<jit::Word> describe_arguments(std::span<const std::string> names) override {
      jit::Describer describer;
      std::size_t position = 0;
      const auto describe = [&](const auto& argument) {
        describer.begin_argument(position, position < names.size() ? names[position] : "");
        visit_leaves(argument, describer);
        ++position;
      };
      std::apply([&](const auto&... argument) { (describe(argument), ...); }, arguments_);
      return describer.take();
    }
    std::shared_ptr<const void> result_form() override {
      auto form = std::make_shared<Result>(*result);
      jit::TensorChanger forget{[](Tensor& tensor) { tensor = Tensor(); }};
      visit_leaves(*form, forget);
      return form;
    }
    void restore(const void* form, std::span<const Tensor> tensors) override {
      if constexpr (std::same_as<Result, Tensor>) {
        result.emplace(tensors[0]);
      } else {
        result.emplace(*static_cast<const Result*>(form));
        const Tensor* next = tensors.data();
        jit::TensorChanger place{[&next](Tensor& tensor) { tensor = *next++; }};
        visit_leaves(*result, place);
      }
    }

   private:
    template <class... A>
    void keep(A&&... arguments) {
      if constexpr (std::is_void_v<std::invoke_result_t<F&, A...>>) {
        function_(std::forward<A>(arguments)...);
        result.emplace();
      } else {
        result.emplace(function_(std::forward<A>(arguments)...));
      }
    }

    F& function_;
    std::tuple<std::remove_reference_t<P>&...> arguments_;
  };

  std::shared_ptr<F> function_;
  std::shared_ptr<jit::CompiledFunction> compiled_;
};

/// Wraps `function`: see docs and the README for the contract. Arguments and results: Tensor,
/// Scalar, std::vector/array/optional/pair/tuple, plain structs of them, structs of Variables by
/// reference; numbers, enums and strings are fixed parts of the signature.
template <class F>
[[nodiscard]] Compiled<std::decay_t<F>> compile(F&& function, CompileOptions options = {}) {
  return Compiled<std::decay_t<F>>(std::forward<F>(function), std::move(options));
}

}  // namespace nitinol

#pragma GCC visibility pop
