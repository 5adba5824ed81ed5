// The scalar instructions that formulas are made of, as data; and Expr, which records them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// The type of one lane. `pred` is a condition: what comparisons give and select takes.
enum class ScalarType : uint8_t { pred, u8, i8, u16, i16, u32, i32, u64, i64, f32, f64 };

/// What an instruction does with operands a, b, c (indices of earlier instructions) and imm.
/// Operands have the result's type unless said otherwise.
enum class ScalarOp : uint8_t {
  constant,    ///< the bit pattern imm (zero-extended)
  argument,    ///< argument number imm of the formula
  add,         ///< a + b; integers wrap here and below
  sub,         ///< a - b
  mul,         ///< a * b
  div,         ///< a / b, floating point
  fma,         ///< a * b + c, rounded once; floating point
  neg,         ///< -a
  abs,         ///< |a|; INT_MIN wraps to itself
  sqrt,        ///< correctly rounded
  floor,       ///< largest integral value <= a; keeps the sign of zero, like the next three
  ceil,        ///< smallest integral value >= a
  trunc,       ///< towards zero
  round_even,  ///< to nearest, ties to even
  round_f16,   ///< f32: the nearest value that f16 has, ties to even; NaN stays NaN
  round_bf16,  ///< f32: the nearest value that bf16 has, likewise
  int_div,     ///< quotient truncated towards zero; b is known to be nonzero; INT_MIN / -1 wraps
  int_rem,     ///< a - int_div(a, b) * b; b is known to be nonzero
  mul_high,    ///< upper half of the double-width product
  eq,          ///< pred: a == b; a and b of one type (pred too), here and in the next three
  ne,          ///< pred: a != b, true if either is NaN
  lt,          ///< pred: a < b, false if either is NaN
  le,          ///< pred: a <= b, false if either is NaN
  bit_and,     ///< integers and pred, also the next three
  bit_or,
  bit_xor,
  bit_not,
  shl,       ///< a << (b mod width)
  shr,       ///< a >> (b mod width), arithmetic if the type is signed
  select,    ///< c (a pred) ? a : b
  convert,   ///< a to `type`: float to int saturates and NaN gives 0, int to int wraps, pred
             ///< gives 0 or 1, a number to pred is != 0, f64 to f32 rounds to nearest even
  bitcast,   ///< the bits of a, a type of the same size
  table,     ///< entry a (u32, always in range) of the constant table number imm
  load,      ///< of operand number imm of the kernel, the element that lies a (i64) elements after
             ///< the one at the present point; `type` is the compute type of the operand's dtype
  begin_if,  ///< up to the matching end_if: run only if pred a holds in any lane; imm 1: often
  end_if,    ///< select(c, b, a): c is the condition, a the fast value, b the one computed inside
};

/// One instruction. Unused operands and imm are zero, so equal instructions compare equal.
struct ScalarInstr {
  ScalarOp op;
  ScalarType type;
  uint32_t a = 0, b = 0, c = 0;
  uint64_t imm = 0;
  bool operator==(const ScalarInstr&) const = default;
};

/// A straight line of instructions. Values defined between begin_if and end_if are used only there
/// and by that end_if; begin_if and end_if nest.
struct ScalarProgram {
  std::vector<ScalarInstr> instrs;
  bool operator==(const ScalarProgram&) const = default;
};

/// The constant tables that `table` reads: a closed list.
enum class TableId : uint8_t {
  inverse_pi,  ///< bits of 1/pi in u32 words, most significant first; see core/math/reduce.h
};

/// The contents of a constant table, for a backend to embed.
struct ConstantTable {
  std::string_view name;
  ScalarType type;
  std::span<const uint32_t> words;  ///< the elements, each of `type` (all tables are u32 so far)
};

inline constexpr std::size_t table_count = 1;
[[nodiscard]] const ConstantTable& constant_table(TableId id);

[[nodiscard]] std::string_view name_of(ScalarType type);
[[nodiscard]] std::string_view name_of(ScalarOp op);

/// How many operands (a, then b, then c) an instruction reads. begin_if reads 1, end_if 3.
[[nodiscard]] int operand_count(ScalarOp op);

/// Bytes of one value: 1 for pred and 8-bit integers.
[[nodiscard]] constexpr int size_of(ScalarType type) {
  switch (type) {
    case ScalarType::pred:
    case ScalarType::u8:
    case ScalarType::i8:
      return 1;
    case ScalarType::u16:
    case ScalarType::i16:
      return 2;
    case ScalarType::u32:
    case ScalarType::i32:
    case ScalarType::f32:
      return 4;
    case ScalarType::u64:
    case ScalarType::i64:
    case ScalarType::f64:
      break;
  }
  return 8;
}

[[nodiscard]] constexpr bool is_float(ScalarType type) {
  return type >= ScalarType::f32;
}
/// True for i8, i16, i32 and i64.
[[nodiscard]] constexpr bool is_signed_integer(ScalarType type) {
  return type == ScalarType::i8 || type == ScalarType::i16 || type == ScalarType::i32 ||
         type == ScalarType::i64;
}

/// One line per instruction: "%2 = f32 add %0, %1".
[[nodiscard]] std::string to_string(const ScalarProgram& program);

/// The ScalarType of a native type.
template <class T>
inline constexpr ScalarType scalar_type_of = [] {
  if constexpr (std::is_same_v<T, bool>) return ScalarType::pred;
  if constexpr (std::is_same_v<T, float>) return ScalarType::f32;
  if constexpr (std::is_same_v<T, double>) return ScalarType::f64;
  static_assert(std::is_arithmetic_v<T> && sizeof(T) <= 8);
  if constexpr (sizeof(T) == 1) return std::is_signed_v<T> ? ScalarType::i8 : ScalarType::u8;
  if constexpr (sizeof(T) == 2) return std::is_signed_v<T> ? ScalarType::i16 : ScalarType::u16;
  if constexpr (sizeof(T) == 4) return std::is_signed_v<T> ? ScalarType::i32 : ScalarType::u32;
  return std::is_signed_v<T> ? ScalarType::i64 : ScalarType::u64;
}();

/// The native types, in the order of ScalarType.
using NativeTypes = std::tuple<bool, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t,
                               uint64_t, int64_t, float, double>;
/// The native type that `type` stands for.
template <ScalarType type>
using NativeOf = std::tuple_element_t<static_cast<std::size_t>(type), NativeTypes>;

/// Calls f with a value of the native type that `type` stands for.
template <class F>
constexpr auto with_type(ScalarType type, F f) {
  switch (type) {
    case ScalarType::pred:
      return f(NativeOf<ScalarType::pred>{});
    case ScalarType::u8:
      return f(NativeOf<ScalarType::u8>{});
    case ScalarType::i8:
      return f(NativeOf<ScalarType::i8>{});
    case ScalarType::u16:
      return f(NativeOf<ScalarType::u16>{});
    case ScalarType::i16:
      return f(NativeOf<ScalarType::i16>{});
    case ScalarType::u32:
      return f(NativeOf<ScalarType::u32>{});
    case ScalarType::i32:
      return f(NativeOf<ScalarType::i32>{});
    case ScalarType::u64:
      return f(NativeOf<ScalarType::u64>{});
    case ScalarType::i64:
      return f(NativeOf<ScalarType::i64>{});
    case ScalarType::f32:
      return f(NativeOf<ScalarType::f32>{});
    case ScalarType::f64:
      break;
  }
  return f(double{});
}

/// A value while a formula is being recorded: instruction `id` of `program`. Operators and the
/// functions of core/expr.h append instructions, one each, and never fold.
struct Expr {
  ScalarProgram* program;
  uint32_t id;
  ScalarType type;
};

/// Appends an instruction; the Expr's own program is where.
inline Expr emit(ScalarProgram& program, const ScalarInstr& instr) {
  const auto id = static_cast<uint32_t>(program.instrs.size());
  program.instrs.push_back(instr);
  return {&program, id, instr.type};
}

/// Starts a formula: its argument number `k`.
inline Expr argument(ScalarProgram& program, ScalarType type, uint32_t k) {
  return emit(program, {.op = ScalarOp::argument, .type = type, .imm = k});
}

}  // namespace nitinol

#pragma GCC visibility pop
