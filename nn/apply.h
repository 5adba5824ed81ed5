// apply(): a function called for the structs that a module is made of, to set their initial values.
#pragma once

#include "core/error.h"
#include "nn/module.h"

#include <string>
#include <type_traits>

#pragma GCC visibility push(default)

namespace nitinol::nn {
namespace module {

/// Calls f for every struct that it takes.
template <class F>
struct Applier {
  F& f;
  bool is_taken = false;
  void variable(const std::string&, const Variable&) {}
  void training(const Training&) {}
  template <class T>
  void module(const std::string&, T& part) {
    if constexpr (std::is_invocable_v<F&, T&>) {
      f(part);
      is_taken = true;
    }
  }
};

}  // namespace module

/// Calls f(part) for the module and each struct in it that f takes, the outer ones first:
///
///     nn::apply(model, [](const nn::Linear& l) { l.weight.set(nn::orthogonal(l.weight.shape()));
///     });
///
/// Throws Error(value) if there is none, as for an f that takes a `nn::Linear&` of a const module.
template <class M, class F>
void apply(M&& module, F f) {
  module::Applier<F> applier{f};
  module::visit(module, "", applier);
  if (applier.is_taken) return;
  throw Error(ErrorKind::value, {.where = "apply",
                                 .what = "the function takes no part of the module",
                                 .expected = "a parameter such as `const nn::Linear&`",
                                 .got = module::type_name<std::remove_cvref_t<M>>(),
                                 .fix = "Let it take a type of layer that the module holds."});
}

}  // namespace nitinol::nn

#pragma GCC visibility pop
