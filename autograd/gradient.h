// Differentiating functions: grad, value_and_grad, vjp, jvp, hessian, and what stops or replaces
// gradients. Tensor::backward() and parameter() are the other way, for training loops.
#pragma once

#include "autograd/node.h"
#include "core/callable.h"
#include "core/function_ref.h"
#include "core/reflect.h"
#include "core/tensor.h"

#include <functional>
#include <memory>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// The same value, for which no gradient flows. Costs nothing.
[[nodiscard]] Tensor stop_gradient(const Tensor& x);
/// Another name of stop_gradient, from PyTorch.
[[nodiscard]] inline Tensor detach(const Tensor& x) {
  return stop_gradient(x);
}

/// While it lives, this thread's operations are not noted for differentiation.
class NoGradients {
 public:
  NoGradients() : scope_(false) {}

 private:
  autograd::EnabledScope scope_;
};

/// Runs f() without noting how to differentiate it, and returns what it returns.
template <class F>
auto no_grad(F&& f) {
  const NoGradients scope;
  return std::forward<F>(f)();
}

namespace autograd {

/// Arguments that gradients are asked for.
class Arguments {
 public:
  /// The same value as an argument of this differentiation (unless it is not floating).
  [[nodiscard]] Tensor add(const Tensor& value);
  /// Gradients of the results, weighted by the seeds, one per argument; zeros where none arrives.
  /// They are differentiable where the results depend on anything tracked outside. `keep`: the tape
  /// can be used again.
  [[nodiscard]] std::vector<Tensor> gradients(std::span<const Tensor> results,
                                              std::span<const Tensor> seeds, bool keep = false);
  /// A result, without the tape unless something outside is tracked.
  [[nodiscard]] Tensor released(const Tensor& result) const;

 private:
  std::vector<Tensor> leaves_;
};

/// Throws Error(shape) unless `result` is one floating element.
void check_scalar(const char* where, const Tensor& result);
/// Seeds of 1.
[[nodiscard]] std::vector<Tensor> ones_for(std::span<const Tensor> results);

template <class T>
struct IsTuple : std::bool_constant<reflection::is_tuple<T>> {};

/// The loss of a function that returns it alone, or first of a pair or tuple.
template <class Result>
Tensor loss_of(const Result& result) {
  if constexpr (std::same_as<Result, Tensor>) {
    return result;
  } else {
    static_assert(IsTuple<Result>::value,
                  "grad(): the function returns its loss, or a pair or tuple that begins with it");
    return std::get<0>(result);
  }
}

enum class Undefined : bool { skipped, visited };

template <class Change, Undefined undefined>
struct TensorVisitor {
  Change change;
  template <class T>
  void tensor(T& tensor) {
    if (undefined == Undefined::visited || tensor.is_defined()) change(tensor);
  }
  void variable(const Variable&) {}
  void scalar(const Scalar&) {}
  void fixed(uint64_t) {}
};

/// Calls change(tensor) for each tensor in `value`. Undefined ones stay what they are.
template <Undefined undefined = Undefined::skipped, class T, class Change>
void for_each_tensor(T& value, Change change) {
  TensorVisitor<Change, undefined> visitor{change};
  visit_leaves(value, visitor);
}

template <Undefined undefined = Undefined::skipped, class T>
std::vector<Tensor> tensors_in(const T& value) {
  std::vector<Tensor> tensors;
  for_each_tensor<undefined>(value, [&](const Tensor& tensor) { tensors.push_back(tensor); });
  return tensors;
}

/// `value` with its tensors replaced, in order.
template <class T>
T with_tensors(T value, std::span<const Tensor> tensors) {
  std::size_t next = 0;
  for_each_tensor(value, [&](Tensor& tensor) { tensor = tensors[next++]; });
  return value;
}

/// f(argument, rest...), noted for differentiation `order` times.
template <class F, class T, class... Rest>
auto call(int order, const F& f, const T& argument, Arguments& arguments, Rest&&... rest) {
  static_assert(reflection::contains<Tensor, T>(),
                "grad(): the first argument holds no Tensor; for Variables use backward()");
  check_callable("grad", f);
  const EnabledScope scope(true);
  const DifferentiationScope depth(order);
  T copy = argument;
  for_each_tensor(copy, [&](Tensor& tensor) { tensor = arguments.add(tensor); });
  return f(std::as_const(copy), std::forward<Rest>(rest)...);
}

/// Results without tapes that nobody can ask for any more.
template <class T>
T released(T result, const Arguments& arguments) {
  for_each_tensor(result, [&](Tensor& tensor) { tensor = arguments.released(tensor); });
  return result;
}

/// The derivative of pull(seeds) by the seeds, in direction `tangents`.
[[nodiscard]] std::vector<Tensor> push_forward(Arguments& arguments,
                                               std::span<const Tensor> results,
                                               std::span<const Tensor> tangents);

}  // namespace autograd

/// A function that calls f(argument, rest...) and returns {result, gradient}: the gradient of the
/// result with respect to the tensors in `argument` (a Tensor, or any container or plain struct of
/// them), in a value of the argument's type. f returns its loss, one floating element, or a pair or
/// tuple that begins with it. Nests: the gradient of a gradient is its own derivative.
template <class F>
[[nodiscard]] auto value_and_grad(F f) {
  return [f = std::move(f)]<class A, class... Rest>(const A& argument, Rest&&... rest) {
    autograd::Arguments arguments;
    auto result = autograd::call(1, f, argument, arguments, std::forward<Rest>(rest)...);
    const Tensor loss = autograd::loss_of(result);
    autograd::check_scalar("grad", loss);
    const std::vector<Tensor> results = {loss};
    const std::vector<Tensor> gradients = arguments.gradients(results, autograd::ones_for(results));
    return std::pair(autograd::released(std::move(result), arguments),
                     autograd::with_tensors(A(argument), gradients));
  };
}

/// A function that returns the gradient of f: see value_and_grad.
template <class F>
[[nodiscard]] auto grad(F f) {
  return [both = value_and_grad(std::move(f))]<class... A>(A&&... arguments) {
    return both(std::forward<A>(arguments)...).second;
  };
}

/// {f(argument), pull}: pull(seed) is the gradient of the result's tensors weighted by `seed`, a
/// value of the result's type. It may be called again and again.
template <class F, class A>
[[nodiscard]] auto vjp(const F& f, const A& argument) {
  auto arguments = std::make_shared<autograd::Arguments>();
  auto result = autograd::call(1, f, argument, *arguments);
  auto pull = [arguments, result, argument](const decltype(result)& seed) {
    const std::vector<Tensor> results = autograd::tensors_in(result);
    const std::vector<Tensor> gradients =
        arguments->gradients(results, autograd::tensors_in(seed), true);
    return autograd::with_tensors(A(argument), gradients);
  };
  return std::pair(autograd::released(result, *arguments), std::move(pull));
}

/// {f(argument), the derivative of the result in direction `tangent`}; both of the result's type.
/// Computed as the derivative of the vjp by its seed (J. Townsend, "A new trick for calculating
/// Jacobian vector products", 2017), so it costs about three evaluations.
template <class F, class A>
[[nodiscard]] auto jvp(const F& f, const A& argument, const A& tangent) {
  autograd::Arguments arguments;
  auto result = autograd::call(2, f, argument, arguments);
  const std::vector<Tensor> tangents = autograd::push_forward(
      arguments, autograd::tensors_in(result), autograd::tensors_in(tangent));
  auto derivative = autograd::with_tensors(decltype(result)(result), tangents);
  return std::pair(autograd::released(std::move(result), arguments), std::move(derivative));
}

/// The second derivatives of f, whose argument and result are a Tensor of shape [s...] and one
/// element: a tensor of shape [s..., s...].
[[nodiscard]] Tensor hessian(const std::function<Tensor(const Tensor&)>& f, const Tensor& argument);

}  // namespace nitinol

#pragma GCC visibility pop
