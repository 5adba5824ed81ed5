// Sequential: modules and functions, each applied to what the one before gave.
//
//     const nn::Sequential mlp(nn::linear(64, 128), relu, nn::linear(128, 10));
//     const Tensor scores = mlp(x);
#pragma once

#include "core/callable.h"
#include "core/reflect.h"
#include "core/tensor.h"

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// A tuple of modules and other callables from Tensor to Tensor, in the order of application.
/// Activations are the functions themselves: relu, gelu, tanh. For one that takes more arguments,
/// write a lambda. Parameters are named by position, as in PyTorch: "0.weight", "2.weight".
template <class... M>
class Sequential : public std::tuple<M...> {
 public:
  /// Throws Error(value) for a null pointer or an empty std::function.
  explicit Sequential(M... modules) : std::tuple<M...>(std::move(modules)...) {
    std::apply([](const M&... module) { (check_callable("Sequential", module), ...); },
               static_cast<const std::tuple<M...>&>(*this));
  }

  /// The last one's result; `x` itself if there are none. Throws what they throw.
  [[nodiscard]] Tensor operator()(const Tensor& x) const {
    return std::apply(
        [&x](const M&... module) {
          Tensor y = x;
          ((y = module(y)), ...);
          return y;
        },
        static_cast<const std::tuple<M...>&>(*this));
  }
};

/// A name with several meanings, such as tanh (<cmath> has one too), is no type that could be
/// deduced: it is the function from Tensor to Tensor. Packs have no defaults, so there is a guide
/// for each number of modules up to twelve; beyond, write nitinol::tanh.
using Activation = Tensor (*)(const Tensor&);
template <class A = Activation>
Sequential(A) -> Sequential<A>;
template <class A = Activation, class B = Activation>
Sequential(A, B) -> Sequential<A, B>;
template <class A = Activation, class B = Activation, class C = Activation>
Sequential(A, B, C) -> Sequential<A, B, C>;
template <class A = Activation, class B = Activation, class C = Activation, class D = Activation>
Sequential(A, B, C, D) -> Sequential<A, B, C, D>;
template <class A = Activation, class B = Activation, class C = Activation, class D = Activation,
          class E = Activation>
Sequential(A, B, C, D, E) -> Sequential<A, B, C, D, E>;
template <class A = Activation, class B = Activation, class C = Activation, class D = Activation,
          class E = Activation, class F = Activation>
Sequential(A, B, C, D, E, F) -> Sequential<A, B, C, D, E, F>;
template <class A = Activation, class B = Activation, class C = Activation, class D = Activation,
          class E = Activation, class F = Activation, class G = Activation>
Sequential(A, B, C, D, E, F, G) -> Sequential<A, B, C, D, E, F, G>;
template <class A = Activation, class B = Activation, class C = Activation, class D = Activation,
          class E = Activation, class F = Activation, class G = Activation, class H = Activation>
Sequential(A, B, C, D, E, F, G, H) -> Sequential<A, B, C, D, E, F, G, H>;
template <class A = Activation, class B = Activation, class C = Activation, class D = Activation,
          class E = Activation, class F = Activation, class G = Activation, class H = Activation,
          class I = Activation>
Sequential(A, B, C, D, E, F, G, H, I) -> Sequential<A, B, C, D, E, F, G, H, I>;
template <class A = Activation, class B = Activation, class C = Activation, class D = Activation,
          class E = Activation, class F = Activation, class G = Activation, class H = Activation,
          class I = Activation, class J = Activation>
Sequential(A, B, C, D, E, F, G, H, I, J) -> Sequential<A, B, C, D, E, F, G, H, I, J>;
template <class A = Activation, class B = Activation, class C = Activation, class D = Activation,
          class E = Activation, class F = Activation, class G = Activation, class H = Activation,
          class I = Activation, class J = Activation, class K = Activation>
Sequential(A, B, C, D, E, F, G, H, I, J, K) -> Sequential<A, B, C, D, E, F, G, H, I, J, K>;
template <class A = Activation, class B = Activation, class C = Activation, class D = Activation,
          class E = Activation, class F = Activation, class G = Activation, class H = Activation,
          class I = Activation, class J = Activation, class K = Activation, class L = Activation>
Sequential(A, B, C, D, E, F, G, H, I, J, K, L) -> Sequential<A, B, C, D, E, F, G, H, I, J, K, L>;

}  // namespace nitinol::nn

// What takes tuples apart takes a Sequential apart too: modules, arguments of compiled functions.
template <class... M>
struct std::tuple_size<nitinol::nn::Sequential<M...>> : std::tuple_size<std::tuple<M...>> {};
template <std::size_t i, class... M>
struct std::tuple_element<i, nitinol::nn::Sequential<M...>>
    : std::tuple_element<i, std::tuple<M...>> {};
template <class... M>
inline constexpr bool nitinol::reflection::is_tuple<nitinol::nn::Sequential<M...>> = true;

#pragma GCC visibility pop
