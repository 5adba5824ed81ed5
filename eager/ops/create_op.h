// How records of create ops are written: formulas of the position.
#pragma once

#include "eager/ops/define.h"

#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace nitinol {

/// `x` converted to the type of `like`.
inline Expr convert_like(const Expr& like, const Expr& x) {
  return convert(x, like.type);
}
template <class T, class U, Path P>
constexpr Num<T, P> convert_like(Num<T, P>, Num<U, P> x) {
  return convert<T>(x);
}
template <class T, class U>
constexpr Probe<T> convert_like(Probe<T>, Probe<U> x) {
  return convert<T>(x);
}

namespace formulas {

/// F with its result converted to R.
template <class F, class R>
struct Converted {
  template <class... X>
  constexpr auto operator()(X... x) const {
    return convert<R>(F{}(x...));
  }
};

/// F with its result as what f16 and bf16 are rounded from.
template <class F>
struct ToOddFloat {
  template <class... X>
  constexpr auto operator()(X... x) const {
    return to_odd_float(F{}(x...));
  }
};

/// Loops of F over a position and arguments A, the last of type `last`, for the result asked for.
template <class F, class... A>
Loops create_loops(ScalarType last, DType result) {
  if (rounds_to_odd(last, result)) return loops_of<ToOddFloat<F>, float, int64_t, A...>;
  return with_type(compute_type(result),
                   []<class T>(T) -> Loops { return loops_of<Converted<F, T>, T, int64_t, A...>; });
}

template <class F, class T, std::size_t... k>
Loops create_loops_repeat(DType result, std::index_sequence<k...>) {
  return create_loops<F, std::enable_if_t<(k >= 0), T>...>(scalar_type_of<T>, result);
}

}  // namespace formulas

inline constexpr std::array<std::string_view, 2> create_attrs = {"shape", "dtype"};

/// A formula of the position (i64) and of `arity` - 1 numbers of one dtype.
template <std::size_t arity, class F, class... T>
consteval Op create_op(std::string_view name, Types<T...> types, F, std::string_view summary) {
  constexpr auto emit = [](std::span<const Expr> arguments) {
    return formulas::emit<F>(arguments, std::make_index_sequence<arity>{});
  };
  constexpr auto loops = [](ScalarType argument, DType result) {
    Loops found = {};
    const auto look = [&]<class U>(U) {
      if (argument != scalar_type_of<U>) return;
      found = formulas::create_loops_repeat<F, U>(result, std::make_index_sequence<arity - 1>{});
    };
    (look(T{}), ...);
    return found;
  };
  return {.name = name,
          .kind = OpKind::create,
          .arity = static_cast<int>(arity) - 1,
          .accepts = types.dtypes,
          .attr_names = create_attrs,
          .infer = infer_create,
          .formula = {.emit = emit, .loops = loops},
          .summary = summary};
}

}  // namespace nitinol
