// How op records are written: a generic lambda becomes instructions and loops.
#pragma once

#include "core/launch.h"
#include "core/loop.h"
#include "core/math.h"
#include "core/op.h"
#include "core/small_list.h"
#include "eager/apply.h"
#include "eager/infer.h"

#include <concepts>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace nitinol {

/// The C++ types that a formula is compiled for, and the dtypes that compute in them.
template <class... T>
struct Types {
  DTypes dtypes;
};
template <class... A, class... B>
consteval Types<A..., B...> operator|(Types<A...> a, Types<B...> b) {
  return {a.dtypes | b.dtypes};
}
inline constexpr Types<bool> bool_type = {DTypes{boolean}};
inline constexpr Types<float, double> floating_types = {floating};
inline constexpr Types<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t>
    integer_types = {integers};
inline constexpr auto bit_types = bool_type | integer_types;
inline constexpr auto number_types = floating_types | integer_types;
inline constexpr auto all_types = bool_type | number_types;

namespace formulas {

template <class F, std::size_t... k>
Expr emit(std::span<const Expr> arguments, std::index_sequence<k...>) {
  return F{}(arguments[k]...);
}

/// What F gives for arguments A, as a native type.
template <class F, class... A>
using Result = Element<decltype(F{}(std::declval<Num<A>>()...))>;

/// The loops of F for arguments First..., then T as often as is needed to make `arity`.
template <class F, std::size_t arity, class T, class... First>
constexpr Loops loops_for() {
  if constexpr (sizeof...(First) < arity)
    return loops_for<F, arity, T, First..., T>();
  else
    return loops_of<F, Result<F, First...>, First...>;
}

/// F at values[k], of its first argument.
template <class F, const auto& values, std::size_t k>
struct At {
  template <Lane X>
  constexpr auto operator()(X x) const {
    return F{}.template operator()<values[k]>(x);
  }
};

/// The first argument is of type First if given (a condition), the others of the type asked for.
template <class F, std::size_t arity, class... First, class... T>
constexpr auto loops_by_type(Types<T...>) {
  return [](ScalarType argument, DType) {
    Loops loops = {};
    ((argument == scalar_type_of<T> ? void(loops = loops_for<F, arity, T, First...>()) : void()),
     ...);
    return loops;
  };
}

}  // namespace formulas

/// The compiler sees which side of an if_any a constant takes.
template <class F, const auto& values, std::size_t k, class... A>
inline constexpr bool has_slow_path<formulas::At<F, values, k>, A...> = false;

/// The formula that the lambda F (without captures) says, with loops for the types T.
template <std::size_t arity, class... First, class F, class... T>
consteval Formula formula(Types<T...> types, F) {
  return {.emit =
              [](std::span<const Expr> arguments) {
                return formulas::emit<F>(arguments, std::make_index_sequence<arity>{});
              },
          .loops = formulas::loops_by_type<F, arity, First...>(types)};
}

/// A check that the lambda F (without captures) says, of operands of the types T.
template <std::size_t arity, class F, class... T>
consteval ElementCheck check(Types<T...> types, Status::Code code, F) {
  return {.emit =
              [](std::span<const Expr> arguments, ScalarType) {
                return formulas::emit<F>(arguments, std::make_index_sequence<arity>{});
              },
          .loops = formulas::loops_by_type<F, arity>(types),
          .code = static_cast<uint16_t>(code)};
}

/// Functions of one, two or three tensors of one dtype, element by element.
template <std::size_t arity, class F, class... T>
consteval Op elementwise_op(std::string_view name, Types<T...> types, F f,
                            std::string_view summary) {
  return {.name = name,
          .kind = OpKind::elementwise,
          .arity = static_cast<int>(arity),
          .accepts = types.dtypes,
          .infer = infer_elementwise,
          .formula = formula<arity>(types, f),
          .summary = summary};
}
template <class F, class... T>
consteval Op unary_op(std::string_view name, Types<T...> types, F f, std::string_view summary) {
  return elementwise_op<1>(name, types, f, summary);
}
template <class F, class... T>
consteval Op binary_op(std::string_view name, Types<T...> types, F f, std::string_view summary) {
  return elementwise_op<2>(name, types, f, summary);
}
template <class F, class... T>
consteval Op ternary_op(std::string_view name, Types<T...> types, F f, std::string_view summary) {
  return elementwise_op<3>(name, types, f, summary);
}

/// What is made of other ops.
constexpr Op composite(std::string_view name, std::span<const std::string_view> attr_names,
                       Expand expand, std::string_view summary, int arity = 1) {
  return {.name = name,
          .kind = OpKind::composite,
          .arity = arity,
          .attr_names = attr_names,
          .expand = expand,
          .summary = summary};
}

/// F(x, g), of several operations, by apply_at_once().
template <class F>
Tensor at_once(const Tensor& x, const Tensor& g) {
  const Tensor* const inputs[] = {&x, &g};
  return apply_at_once([](Inputs of, const Attrs&) { return F{}(*of[0], *of[1]); }, inputs);
}

/// The op with a gradient rule f(x, g) of its input and the result's gradient, or f(y, g) of its
/// result. One of a single operation is better given by with_rule().
template <class F>
consteval Op by_input(Op op, F) {
  op.gradient = {
      .rule = [](const GradientCall& c, int) { return at_once<F>(c.inputs[0], c.gradient); },
      .looks_at_inputs = 1};
  return op;
}
template <class F>
consteval Op by_result(Op op, F) {
  op.gradient = {
      .rule = [](const GradientCall& c, int) { return at_once<F>(c.result, c.gradient); },
      .looks_at_result = true};
  return op;
}
/// A rule of several operations by apply_at_once(). It looks at all inputs, and not at
/// GradientCall::input_specs.
template <GradientRule rule, bool looks_at_result, int k>
Tensor expand_rule(Inputs operands, const Attrs& attrs) {
  return apply_rule(rule, looks_at_result, k, operands, attrs);
}
template <GradientRule rule, bool looks_at_result>
Tensor rule_at_once(const GradientCall& c, int k) {
  constexpr Expand expands[] = {expand_rule<rule, looks_at_result, 0>,
                                expand_rule<rule, looks_at_result, 1>,
                                expand_rule<rule, looks_at_result, 2>};
  SmallList<const Tensor*, 5> operands;
  for (const Tensor& input : c.inputs) operands.push_back(&input);
  if (looks_at_result) operands.push_back(&c.result);
  operands.push_back(&c.gradient);
  return apply_at_once(expands[k], operands, c.attrs);
}

/// With such a rule, of several operations; of one it is better given by with_rule().
template <GradientRule rule, bool looks_at_result = false>
consteval Op with_rule_at_once(Op op) {
  op.gradient = {.rule = rule_at_once<rule, looks_at_result>,
                 .looks_at_inputs = (1U << op.arity) - 1,
                 .looks_at_result = looks_at_result};
  return op;
}

/// With a rule that looks at the inputs of these bits.
consteval Op with_rule(Op op, Tensor (*rule)(const GradientCall&, int), uint32_t inputs = 0,
                       bool result = false) {
  op.gradient = {.rule = rule, .looks_at_inputs = inputs, .looks_at_result = result};
  return op;
}
/// Constant almost everywhere, or not a function of floating values.
consteval Op without_gradient(Op op) {
  op.gradient.is_zero = true;
  return op;
}

/// With formulas for a second argument that is the same everywhere: F<value> of the first one,
/// which is short, for each of the `values`; in loops also Other of both, for others.
template <const auto& values, class F, class Other, class... T>
consteval Op with_loops_at(Op op, Types<T...>, F, Other) {
  op.formula.loops_at = [](ScalarType argument, double value) {
    LoopsAt found = {};
    const auto choose = [&]<class Type, std::size_t k>() {
      if (value == static_cast<double>(values[k]))
        found = {.loops = loops_of<formulas::At<F, values, k>, Type, Type>,
                 .emit = [](std::span<const Expr> arguments) {
                   return formulas::At<F, values, k>{}(arguments[0]);
                 }};
    };
    const auto choose_any = [&]<class Type, std::size_t... k>(std::index_sequence<k...>) {
      if (argument != scalar_type_of<Type>) return;
      found.loops = loops_of<Other, Type, Type, Type>;
      (choose.template operator()<Type, k>(), ...);
    };
    (choose_any.template operator()<T>(std::make_index_sequence<std::size(values)>()), ...);
    return found;
  };
  return op;
}

/// The same op with a boolean result.
consteval Op predicate(Op op) {
  op.is_predicate = true;
  op.gradient.is_zero = true;
  return op;
}

}  // namespace nitinol
