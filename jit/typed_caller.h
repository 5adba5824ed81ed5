// What a call of a compiled function does that depends on the types of its parameters and result.
#pragma once

#include "core/reflect.h"
#include "jit/compiled_function.h"
#include "jit/parameters.h"

#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::jit {

/// The arguments of a call, where they lie, and its result: what functions of the same types have
/// in common, so that compile(f) takes a compiler a quarter of the time.
template <class Result, class... P>
class TypedCaller : public Caller {
 public:
  explicit TypedCaller(std::remove_reference_t<P>&... arguments) : arguments_(arguments...) {}

  std::optional<Result> result;

  void run() override {
    std::apply([&](auto&... a) { call(static_cast<P&&>(a)...); }, arguments_);
  }
  void run_on(std::span<const Tensor> tensors, std::span<const Tensor> scalars) override {
    StandInPlacer placer{tensors.data(), scalars.data()};
    std::apply(
        [&](auto&... argument) {
          // Braces fix the order of evaluation: stand-ins are taken from left to right.
          std::tuple<decltype(with_stand_ins(argument, placer))...> given{
              with_stand_ins(argument, placer)...};
          std::apply([&](auto&... a) { call(static_cast<P&&>(a)...); }, given);
        },
        arguments_);
  }
  void result_leaves(Leaves& leaves) override {
    LeafCollector collector{leaves};
    visit_leaves(std::as_const(*result), collector);
  }
  void change_result(FunctionRef<void(Tensor&)> change) override {
    TensorChanger changer{change};
    visit_leaves(*result, changer);
  }
  std::vector<Word> describe_arguments(std::span<const std::string> names) override {
    Describer describer;
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
    // What is undefined stays so; the others are replaced by one that holds nothing.
    const Tensor any = make_tensor({}, {}, 0, {});
    TensorChanger forget{[&any](Tensor& tensor) { tensor = any; }};
    visit_leaves(*form, forget);
    return form;
  }
  void restore(const void* form, std::span<Tensor> tensors) override {
    if constexpr (std::same_as<Result, Tensor>) {
      result.emplace(tensors.empty() ? Tensor() : std::move(tensors[0]));
    } else {
      result.emplace(*static_cast<const Result*>(form));
      Tensor* next = tensors.data();
      TensorChanger place{[&next](Tensor& tensor) { tensor = std::move(*next++); }};
      visit_leaves(*result, place);
    }
  }

 private:
  /// Calls the function and keeps what it returns.
  virtual void call(P&&... arguments) = 0;

  std::tuple<std::remove_reference_t<P>&...> arguments_;
};

}  // namespace nitinol::jit

#pragma GCC visibility pop
