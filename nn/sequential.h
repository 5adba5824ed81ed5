// Sequential: modules and functions, each applied to what the one before gave.
//
//     const nn::Sequential mlp(nn::linear(64, 128), relu, nn::linear(128, 10));
//     const Tensor scores = mlp(x);
#pragma once

#include "core/reflect.h"
#include "core/tensor.h"

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// A tuple of modules and other callables from Tensor to Tensor, in the order of application.
/// Activations are the functions themselves: relu, gelu, nitinol::tanh (<cmath> has one, too). For
/// one that takes more arguments, write a lambda. Parameters are named by position, as in PyTorch:
/// "0.weight", "2.weight".
template <class... M>
class Sequential : public std::tuple<M...> {
 public:
  explicit Sequential(M... modules) : std::tuple<M...>(std::move(modules)...) {}

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
