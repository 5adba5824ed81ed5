// What can be called but need not hold anything: pointers to functions, std::function.
#pragma once

#include <functional>
#include <type_traits>

#pragma GCC visibility push(default)

namespace nitinol {

template <class T>
inline constexpr bool is_std_function = false;
template <class S>
inline constexpr bool is_std_function<std::function<S>> = true;

/// Throws Error(value) that `where` was given a function that is empty. (core/error.cpp)
[[noreturn]] void throw_empty_function(const char* where);

/// Throws it if `function` is a null pointer or an empty std::function.
template <class F>
void check_callable(const char* where, const F& function) {
  if constexpr (std::is_pointer_v<F> || is_std_function<F>) {
    if (function == nullptr) throw_empty_function(where);
  }
}

}  // namespace nitinol

#pragma GCC visibility pop
