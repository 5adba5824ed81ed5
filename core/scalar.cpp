// The interpreter of scalar programs, their hash and their text.
//
// The interpreter is the oracle of the backends: it works on bit patterns, one lane, one
// instruction at a time, with the functions of core/native.h, and takes begin_if as a real branch.

#include "core/scalar.h"

#include "core/hash.h"
#include "core/math/half.h"
#include "core/native.h"
#include "core/tables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <concepts>
#include <iterator>
#include <sstream>
#include <string>

namespace nitinol {

namespace {

constexpr auto type_names = std::to_array<std::string_view>(
    {"pred", "u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64", "f32", "f64"});

struct OpInfo {
  std::string_view name;
  int operands;
};
constexpr auto op_infos = std::to_array<OpInfo>(
    {{"constant", 0},   {"argument", 0}, {"add", 2},     {"sub", 2},        {"mul", 2},
     {"div", 2},        {"fma", 3},      {"neg", 1},     {"abs", 1},        {"sqrt", 1},
     {"floor", 1},      {"ceil", 1},     {"trunc", 1},   {"round_even", 1}, {"round_f16", 1},
     {"round_bf16", 1}, {"int_div", 2},  {"int_rem", 2}, {"mul_high", 2},   {"eq", 2},
     {"ne", 2},         {"lt", 2},       {"le", 2},      {"bit_and", 2},    {"bit_or", 2},
     {"bit_xor", 2},    {"bit_not", 1},  {"shl", 2},     {"shr", 2},        {"select", 3},
     {"convert", 1},    {"bitcast", 1},  {"table", 1},   {"begin_if", 1},   {"end_if", 3}});
static_assert(op_infos.size() == static_cast<std::size_t>(ScalarOp::end_if) + 1);

template <class T>
T from_bits(uint64_t bits) {
  if constexpr (std::is_same_v<T, bool>)
    return bits != 0;
  else
    return std::bit_cast<T>(static_cast<native::Bits<T>>(bits));
}
template <class T>
uint64_t to_bits(T value) {
  if constexpr (std::is_same_v<T, bool>)
    return value ? 1 : 0;
  else
    return std::bit_cast<native::Bits<T>>(value);
}

/// Calls f with a value of the native type that `type` stands for.
template <class F>
auto with_type(ScalarType type, F f) {
  switch (type) {
    case ScalarType::pred:
      return f(bool{});
    case ScalarType::u8:
      return f(uint8_t{});
    case ScalarType::i8:
      return f(int8_t{});
    case ScalarType::u16:
      return f(uint16_t{});
    case ScalarType::i16:
      return f(int16_t{});
    case ScalarType::u32:
      return f(uint32_t{});
    case ScalarType::i32:
      return f(int32_t{});
    case ScalarType::u64:
      return f(uint64_t{});
    case ScalarType::i64:
      return f(int64_t{});
    case ScalarType::f32:
      return f(float{});
    case ScalarType::f64:
      return f(double{});
  }
  return f(bool{});
}

struct Operands {
  uint64_t a, b, c;
};

template <native::Float T>
uint64_t compute(ScalarOp op, const Operands& in) {
  const T a = from_bits<T>(in.a), b = from_bits<T>(in.b), c = from_bits<T>(in.c);
  switch (op) {
    case ScalarOp::add:
      return to_bits(native::add(a, b));
    case ScalarOp::sub:
      return to_bits(native::sub(a, b));
    case ScalarOp::mul:
      return to_bits(native::mul(a, b));
    case ScalarOp::div:
      return to_bits(native::div(a, b));
    case ScalarOp::fma:
      return to_bits(native::fma(a, b, c));
    case ScalarOp::neg:
      return to_bits(native::neg(a));
    case ScalarOp::abs:
      return to_bits(native::abs(a));
    case ScalarOp::sqrt:
      return to_bits(native::sqrt(a));
    case ScalarOp::floor:
      return to_bits(native::floor(a));
    case ScalarOp::ceil:
      return to_bits(native::ceil(a));
    case ScalarOp::trunc:
      return to_bits(native::trunc(a));
    case ScalarOp::round_even:
      return to_bits(native::round_even(a));
    default:
      break;
  }
  assert(!"instruction is not defined for floating point");
  return 0;
}

template <native::Int T>
uint64_t compute(ScalarOp op, const Operands& in) {
  const T a = from_bits<T>(in.a), b = from_bits<T>(in.b);
  switch (op) {
    case ScalarOp::add:
      return to_bits(native::add(a, b));
    case ScalarOp::sub:
      return to_bits(native::sub(a, b));
    case ScalarOp::mul:
      return to_bits(native::mul(a, b));
    case ScalarOp::neg:
      return to_bits(native::neg(a));
    case ScalarOp::abs:
      return to_bits(native::abs(a));
    case ScalarOp::int_div:
      return to_bits(native::int_div(a, b));
    case ScalarOp::int_rem:
      return to_bits(native::int_rem(a, b));
    case ScalarOp::mul_high:
      return to_bits(native::mul_high(a, b));
    case ScalarOp::bit_and:
      return to_bits(native::bit_and(a, b));
    case ScalarOp::bit_or:
      return to_bits(native::bit_or(a, b));
    case ScalarOp::bit_xor:
      return to_bits(native::bit_xor(a, b));
    case ScalarOp::bit_not:
      return to_bits(native::bit_not(a));
    case ScalarOp::shl:
      return to_bits(native::shl(a, b));
    case ScalarOp::shr:
      return to_bits(native::shr(a, b));
    default:
      break;
  }
  assert(!"instruction is not defined for integers");
  return 0;
}

template <std::same_as<bool> T>
uint64_t compute(ScalarOp op, const Operands& in) {
  switch (op) {
    case ScalarOp::bit_and:
      return in.a & in.b;
    case ScalarOp::bit_or:
      return in.a | in.b;
    case ScalarOp::bit_xor:
      return in.a ^ in.b;
    case ScalarOp::bit_not:
      return in.a ^ 1;
    default:
      break;
  }
  assert(!"instruction is not defined for conditions");
  return 0;
}

uint64_t compare(ScalarOp op, ScalarType type, const Operands& in) {
  return with_type(type, [&]<class T>(T) -> uint64_t {
    const T a = from_bits<T>(in.a), b = from_bits<T>(in.b);
    if (op == ScalarOp::eq) return a == b;
    if (op == ScalarOp::ne) return a != b;
    return op == ScalarOp::lt ? a < b : a <= b;
  });
}

uint64_t converted(ScalarType to, ScalarType from, uint64_t a) {
  return with_type(to, [&]<class To>(To) {
    return with_type(
        from, [&]<class From>(From) { return to_bits(native::convert<To>(from_bits<From>(a))); });
  });
}

/// The end_if that belongs to the begin_if at `begin`.
std::size_t matching_end(const ScalarProgram& program, std::size_t begin) {
  std::size_t depth = 0;
  for (std::size_t i = begin; i < program.instrs.size(); ++i) {
    if (program.instrs[i].op == ScalarOp::begin_if) ++depth;
    if (program.instrs[i].op == ScalarOp::end_if && --depth == 0) return i;
  }
  assert(!"begin_if without end_if");
  return program.instrs.size() - 1;
}

uint64_t run(const ScalarProgram& program, const ScalarInstr& instr, const Operands& in,
             std::span<const uint64_t> args) {
  switch (instr.op) {
    case ScalarOp::constant:
      return instr.imm;
    case ScalarOp::argument:
      return args[instr.imm];
    case ScalarOp::eq:
    case ScalarOp::ne:
    case ScalarOp::lt:
    case ScalarOp::le:
      return compare(instr.op, program.instrs[instr.a].type, in);
    case ScalarOp::select:
      return in.c != 0 ? in.a : in.b;
    case ScalarOp::convert:
      return converted(instr.type, program.instrs[instr.a].type, in.a);
    case ScalarOp::bitcast:
      return in.a;
    case ScalarOp::table:
      return constant_table(static_cast<TableId>(instr.imm)).words[in.a];
    case ScalarOp::end_if:
      return in.c != 0 ? in.b : in.a;
    case ScalarOp::round_f16:
      return to_bits(rounded_to_half(Num<float>(from_bits<float>(in.a))).value);
    case ScalarOp::round_bf16:
      return to_bits(rounded_to_bfloat(Num<float>(from_bits<float>(in.a))).value);
    default:
      return with_type(instr.type, [&]<class T>(T) { return compute<T>(instr.op, in); });
  }
}

}  // namespace

std::vector<uint64_t> evaluate(const ScalarProgram& program, std::span<const uint64_t> args,
                               std::span<const uint32_t> wanted) {
  std::vector<uint64_t> values(program.instrs.size());
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const ScalarInstr& instr = program.instrs[i];
    if (instr.op == ScalarOp::begin_if) {
      if (values[instr.a] == 0) {
        i = matching_end(program, i);
        values[i] = values[program.instrs[i].a];
      }
      continue;
    }
    values[i] = run(program, instr, {values[instr.a], values[instr.b], values[instr.c]}, args);
  }
  std::vector<uint64_t> results;
  std::ranges::transform(wanted, std::back_inserter(results),
                         [&](uint32_t id) { return values[id]; });
  return results;
}

uint64_t ScalarProgram::hash() const {
  Hash hash;
  hash.add(instrs.size());
  for (const ScalarInstr& instr : instrs) {
    hash.add(static_cast<uint64_t>(instr.op) | static_cast<uint64_t>(instr.type) << 8 |
             static_cast<uint64_t>(instr.a) << 32);
    hash.add(instr.b | static_cast<uint64_t>(instr.c) << 32);
    hash.add(instr.imm);
  }
  return hash.result();
}

const ConstantTable& constant_table(TableId id) {
  static constexpr auto tables = std::to_array<ConstantTable>(
      {{"inverse_pi", ScalarType::u32, table_words<TableId::inverse_pi>}});
  static_assert(tables.size() == table_count);
  return tables[static_cast<std::size_t>(id)];
}

std::string_view name_of(ScalarType type) {
  return type_names[static_cast<std::size_t>(type)];
}

std::string_view name_of(ScalarOp op) {
  return op_infos[static_cast<std::size_t>(op)].name;
}

int operand_count(ScalarOp op) {
  return op_infos[static_cast<std::size_t>(op)].operands;
}

int size_of(ScalarType type) {
  return with_type(type, []<class T>(T) { return static_cast<int>(sizeof(T)); });
}

std::string to_string(const ScalarProgram& program) {
  std::ostringstream text;
  for (std::size_t i = 0; i < program.instrs.size(); ++i) {
    const ScalarInstr& instr = program.instrs[i];
    text << '%' << i << " = " << name_of(instr.type) << ' ' << name_of(instr.op);
    const std::array<uint32_t, 3> operands = {instr.a, instr.b, instr.c};
    for (std::size_t k = 0; k < static_cast<std::size_t>(operand_count(instr.op)); ++k) {
      text << (k == 0 ? " %" : ", %") << operands[k];
    }
    if (instr.op == ScalarOp::constant) {
      with_type(instr.type, [&]<class T>(T) { text << ' ' << +from_bits<T>(instr.imm); });
    }
    if (instr.op == ScalarOp::argument) text << ' ' << instr.imm;
    if (instr.op == ScalarOp::table) {
      text << " of " << constant_table(static_cast<TableId>(instr.imm)).name;
    }
    text << '\n';
  }
  return text.str();
}

}  // namespace nitinol
