// Functions with a gradient of their own, and functions whose intermediate values are computed
// again rather than kept.
#pragma once

#include "autograd/gradient.h"

#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {
namespace autograd {

using TensorFunction = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

/// f(arguments) without its tape; backward runs f again, on the values that Variables and
/// Generators had, and goes back through that.
[[nodiscard]] std::vector<Tensor> checkpointed(const TensorFunction& f,
                                               const std::vector<Tensor>& arguments);

/// The gradients of the arguments from that of the result.
using Pull = std::function<std::vector<Tensor>(const Tensor& gradient)>;
/// A result and how to go back from it.
using CustomFunction = std::function<std::pair<Tensor, Pull>(const std::vector<Tensor>&)>;
[[nodiscard]] Tensor customized(const CustomFunction& f, const std::vector<Tensor>& arguments);

}  // namespace autograd

/// f, keeping for backward() its arguments and what it closes over, to which gradients flow: what
/// it computes is computed again when the gradient is asked for (T. Chen et al., "Training deep
/// nets with sublinear memory cost", 2016). Random numbers are drawn as the first time, Variables
/// are assigned once. Arguments and results are Tensors and containers and plain structs of them.
template <class F>
[[nodiscard]] auto checkpoint(F f) {
  check_callable("checkpoint", f);
  return [f = std::move(f)]<class... A>(const A&... arguments) {
    using Arguments = std::tuple<A...>;
    using Result = std::decay_t<std::invoke_result_t<const F&, const A&...>>;
    Arguments held(arguments...);
    std::optional<Result> first;
    auto wanted = std::make_shared<std::optional<Result>*>(&first);
    const std::vector<Tensor> results = autograd::checkpointed(
        [f, held, wanted](const std::vector<Tensor>& tensors) {
          Result result = std::apply(f, autograd::with_tensors(Arguments(held), tensors));
          std::vector<Tensor> list = autograd::tensors_in(result);
          if (*wanted != nullptr) **wanted = std::move(result);
          return list;
        },
        autograd::tensors_in(held));
    *wanted = nullptr;
    return autograd::with_tensors(std::move(*first), results);
  };
}

/// A function of Tensors whose gradient is what f says: f(x...) returns {result, pull}, and
/// pull(gradient of the result) returns the gradient of x, or a std::tuple of one for each argument
/// (an undefined Tensor() for none).
///
///     auto clipped = custom_gradient([](const Tensor& x) {
///       return std::pair(x, [](const Tensor& g) { return clamp(g, -1.0, 1.0); });
///     });
template <class F>
[[nodiscard]] auto custom_gradient(F f) {
  check_callable("custom_gradient", f);
  return [f = std::move(f)]<class... A>(const A&... arguments) {
    static_assert((std::convertible_to<A, Tensor> && ...),
                  "custom_gradient(): the function takes Tensors; capture the rest");
    return autograd::customized(
        [f](const std::vector<Tensor>& x) {
          auto [result, pull] = [&]<std::size_t... k>(std::index_sequence<k...>) {
            return f(x[k]...);
          }
          (std::index_sequence_for<A...>{});
          return std::pair<Tensor, autograd::Pull>(
              std::move(result), [pull = std::move(pull)](const Tensor& gradient) {
                return autograd::tensors_in<autograd::Undefined::visited>(pull(gradient));
              });
        },
        {Tensor(arguments)...});
  };
}

}  // namespace nitinol

#pragma GCC visibility pop
