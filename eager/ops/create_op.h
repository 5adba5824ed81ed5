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

/// Loops of F over a position and arguments A for the result type asked for.
template <class F, class... A>
Loops create_loops(ScalarType result) {
  // clang-format off
  switch (result) {
    case ScalarType::pred: return loops_of<Converted<F, bool>, bool, int64_t, A...>;
    case ScalarType::u8: return loops_of<Converted<F, uint8_t>, uint8_t, int64_t, A...>;
    case ScalarType::i8: return loops_of<Converted<F, int8_t>, int8_t, int64_t, A...>;
    case ScalarType::i16: return loops_of<Converted<F, int16_t>, int16_t, int64_t, A...>;
    case ScalarType::i32: return loops_of<Converted<F, int32_t>, int32_t, int64_t, A...>;
    case ScalarType::i64: return loops_of<Converted<F, int64_t>, int64_t, int64_t, A...>;
    case ScalarType::f32: return loops_of<Converted<F, float>, float, int64_t, A...>;
    case ScalarType::f64: return loops_of<Converted<F, double>, double, int64_t, A...>;
    case ScalarType::u16: return loops_of<ToOddFloat<F>, float, int64_t, A...>;
    case ScalarType::u32:
    case ScalarType::u64: break;
  }
  // clang-format on
  return {};
}

template <class F, class T, std::size_t... k>
Loops create_loops_repeat(ScalarType result, std::index_sequence<k...>) {
  return create_loops<F, std::enable_if_t<(k >= 0), T>...>(result);
}

}  // namespace formulas

inline constexpr std::array<std::string_view, 2> create_attrs = {"shape", "dtype"};

/// A formula of the position (i64) and of `arity` - 1 numbers of one dtype.
template <std::size_t arity, class F, class... T>
consteval Op create_op(std::string_view name, Types<T...> types, F, std::string_view summary) {
  constexpr auto emit = [](std::span<const Expr> arguments) {
    return formulas::emit<F>(arguments, std::make_index_sequence<arity>{});
  };
  constexpr auto loops = [](ScalarType argument, ScalarType result) {
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
