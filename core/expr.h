// Operators and functions of Expr: each appends the one instruction it stands for.
#pragma once

#include "core/scalar.h"

#include <bit>
#include <cassert>
#include <concepts>
#include <cstdint>
#include <type_traits>

namespace nitinol {

/// A C++ number written in a formula beside an Expr; takes the Expr's type.
template <class L>
concept Literal = std::is_arithmetic_v<L>;

/// The bit pattern, zero-extended, of `value` converted to `type`.
template <Literal L>
[[nodiscard]] constexpr uint64_t bits_of(ScalarType type, L value) {
  switch (type) {
    case ScalarType::pred:
      return value != L{0};
    case ScalarType::u8:
      return static_cast<uint8_t>(value);
    case ScalarType::i8:
      return static_cast<uint8_t>(static_cast<int8_t>(value));
    case ScalarType::u16:
      return static_cast<uint16_t>(value);
    case ScalarType::i16:
      return static_cast<uint16_t>(static_cast<int16_t>(value));
    case ScalarType::u32:
      return static_cast<uint32_t>(value);
    case ScalarType::i32:
      return static_cast<uint32_t>(static_cast<int32_t>(value));
    case ScalarType::u64:
      return static_cast<uint64_t>(value);
    case ScalarType::i64:
      return static_cast<uint64_t>(static_cast<int64_t>(value));
    case ScalarType::f32:
      return std::bit_cast<uint32_t>(static_cast<float>(value));
    case ScalarType::f64:
      return std::bit_cast<uint64_t>(static_cast<double>(value));
  }
  return 0;
}

/// A constant of a given type in the program of `like`.
template <Literal L>
Expr constant(const Expr& like, ScalarType type, L value) {
  return emit(*like.program, {.op = ScalarOp::constant, .type = type, .imm = bits_of(type, value)});
}

/// An Expr as it is, or a literal as a constant of the type of `like`.
inline Expr lift(const Expr& like, const Expr& x) {
  assert(like.type == x.type && like.program == x.program);
  static_cast<void>(like);
  return x;
}
template <Literal L>
Expr lift(const Expr& like, L value) {
  return constant(like, like.type, value);
}

template <class X>
concept ExprOrLiteral = std::same_as<X, Expr> || Literal<X>;

/// The first Expr among the operands: it gives literals their type.
template <class A, class... Rest>
Expr first_expr(const A& a, const Rest&... rest) {
  if constexpr (std::same_as<A, Expr>)
    return a;
  else
    return first_expr(rest...);
}

inline Expr unary(ScalarOp op, ScalarType type, const Expr& a) {
  return emit(*a.program, {.op = op, .type = type, .a = a.id});
}
template <ExprOrLiteral A, ExprOrLiteral B>
Expr binary(ScalarOp op, const A& a, const B& b) {
  const Expr like = first_expr(a, b);
  const Expr left = lift(like, a), right = lift(like, b);
  return emit(*like.program, {.op = op, .type = like.type, .a = left.id, .b = right.id});
}
template <ExprOrLiteral A, ExprOrLiteral B>
Expr comparison(ScalarOp op, const A& a, const B& b) {
  const Expr like = first_expr(a, b);
  const Expr left = lift(like, a), right = lift(like, b);
  return emit(*like.program, {.op = op, .type = ScalarType::pred, .a = left.id, .b = right.id});
}

/// At least one operand is an Expr.
template <class... X>
concept SomeExpr = (ExprOrLiteral<X> && ...) && (std::same_as<X, Expr> || ...);

// clang-format off
template <class A, class B> requires SomeExpr<A, B> Expr operator+(const A& a, const B& b) { return binary(ScalarOp::add, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator-(const A& a, const B& b) { return binary(ScalarOp::sub, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator*(const A& a, const B& b) { return binary(ScalarOp::mul, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator/(const A& a, const B& b) {
  return binary(is_float(first_expr(a, b).type) ? ScalarOp::div : ScalarOp::int_div, a, b);
}
template <class A, class B> requires SomeExpr<A, B> Expr operator%(const A& a, const B& b) { return binary(ScalarOp::int_rem, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator&(const A& a, const B& b) { return binary(ScalarOp::bit_and, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator|(const A& a, const B& b) { return binary(ScalarOp::bit_or, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator^(const A& a, const B& b) { return binary(ScalarOp::bit_xor, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator<<(const A& a, const B& b) { return binary(ScalarOp::shl, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator>>(const A& a, const B& b) { return binary(ScalarOp::shr, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator==(const A& a, const B& b) { return comparison(ScalarOp::eq, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator!=(const A& a, const B& b) { return comparison(ScalarOp::ne, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator<(const A& a, const B& b) { return comparison(ScalarOp::lt, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator<=(const A& a, const B& b) { return comparison(ScalarOp::le, a, b); }
template <class A, class B> requires SomeExpr<A, B> Expr operator>(const A& a, const B& b) { return comparison(ScalarOp::lt, b, a); }
template <class A, class B> requires SomeExpr<A, B> Expr operator>=(const A& a, const B& b) { return comparison(ScalarOp::le, b, a); }
template <class A, class B> requires SomeExpr<A, B> Expr mul_high(const A& a, const B& b) { return binary(ScalarOp::mul_high, a, b); }
inline Expr operator-(const Expr& a) { return unary(ScalarOp::neg, a.type, a); }
inline Expr operator~(const Expr& a) { return unary(ScalarOp::bit_not, a.type, a); }
inline Expr operator!(const Expr& a) { return unary(ScalarOp::bit_not, a.type, a); }
inline Expr abs(const Expr& a) { return unary(ScalarOp::abs, a.type, a); }
inline Expr sqrt(const Expr& a) { return unary(ScalarOp::sqrt, a.type, a); }
inline Expr floor(const Expr& a) { return unary(ScalarOp::floor, a.type, a); }
inline Expr ceil(const Expr& a) { return unary(ScalarOp::ceil, a.type, a); }
inline Expr trunc(const Expr& a) { return unary(ScalarOp::trunc, a.type, a); }
inline Expr round_f16(const Expr& a) { return unary(ScalarOp::round_f16, a.type, a); }
inline Expr round_bf16(const Expr& a) { return unary(ScalarOp::round_bf16, a.type, a); }
inline Expr round_even(const Expr& a) { return unary(ScalarOp::round_even, a.type, a); }
// clang-format on

/// a * b + c, rounded once.
template <class A, class B, class C>
requires SomeExpr<A, B, C> Expr fma(const A& a, const B& b, const C& c) {
  const Expr like = first_expr(a, b, c);
  const Expr x = lift(like, a), y = lift(like, b), z = lift(like, c);
  return emit(*like.program,
              {.op = ScalarOp::fma, .type = like.type, .a = x.id, .b = y.id, .c = z.id});
}

/// condition ? a : b. At least one of a and b must be an Expr.
template <class A, class B>
requires SomeExpr<A, B> Expr select(const Expr& condition, const A& a, const B& b) {
  assert(condition.type == ScalarType::pred);
  const Expr like = first_expr(a, b);
  const Expr x = lift(like, a), y = lift(like, b);
  return emit(*like.program,
              {.op = ScalarOp::select, .type = like.type, .a = x.id, .b = y.id, .c = condition.id});
}

/// Always an instruction, even when the types agree.
inline Expr convert(const Expr& a, ScalarType type) {
  return unary(ScalarOp::convert, type, a);
}
template <class To>
Expr convert(const Expr& a) {
  return convert(a, scalar_type_of<To>);
}

template <class To>
Expr bitcast(const Expr& a) {
  assert(size_of(a.type) == sizeof(To));
  return unary(ScalarOp::bitcast, scalar_type_of<To>, a);
}

/// Entry `index` (u32, in range) of a constant table.
template <TableId id>
Expr table(const Expr& index) {
  assert(index.type == ScalarType::u32);
  return emit(*index.program, {.op = ScalarOp::table,
                               .type = constant_table(id).type,
                               .a = index.id,
                               .imm = static_cast<uint64_t>(id)});
}

/// `fast` where the condition is false, `slow()` where it is true; slow() is computed only if the
/// condition holds in some lane.
template <std::invocable Slow>
Expr if_any(const Expr& condition, const Expr& fast, Slow&& slow, uint64_t is_often = 0) {
  emit(*condition.program,
       {.op = ScalarOp::begin_if, .type = ScalarType::pred, .a = condition.id, .imm = is_often});
  const Expr exact = slow();
  assert(exact.type == fast.type);
  return emit(
      *condition.program,
      {.op = ScalarOp::end_if, .type = fast.type, .a = fast.id, .b = exact.id, .c = condition.id});
}

/// `common` where the condition is true, `rest()` where it is false; rest() is computed only if the
/// condition fails in some lane.
template <std::invocable Rest>
Expr unless_all(const Expr& condition, const Expr& common, Rest&& rest) {
  return if_any(!condition, common, rest, 1);
}

/// Whether `candidate` is true and `test()` too; test() is computed only if there is a candidate in
/// some lane.
template <std::invocable Test>
Expr both(const Expr& candidate, Test&& test) {
  return if_any(candidate, constant(candidate, ScalarType::pred, 0), test);
}

/// `first()` where the condition is true, `second()` where it is false; each is computed only if
/// some lane needs it.
template <std::invocable First, std::invocable Second>
Expr either(const Expr& like, const Expr& condition, First&& first, Second&& second) {
  return unless_all(condition, if_any(condition, like, first, 1), second);
}

}  // namespace nitinol
