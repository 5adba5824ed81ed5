// The oracle of the backends: it works on bit patterns, one lane, one instruction at a time, with
// the functions of core/native.h, and takes begin_if as a real branch.

#include "core/evaluate.h"

#include "core/bits.h"
#include "core/math/half.h"
#include "core/native.h"
#include "core/tables.h"

#include <algorithm>
#include <cassert>
#include <concepts>
#include <iterator>

namespace nitinol {

namespace {

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
             std::span<const uint64_t> args, LoadElement load) {
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
    case ScalarOp::load:
      return load(instr.imm, from_bits<int64_t>(in.a));
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
                               std::span<const uint32_t> wanted, LoadElement load) {
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
    values[i] =
        run(program, instr, {values[instr.a], values[instr.b], values[instr.c]}, args, load);
  }
  std::vector<uint64_t> results;
  std::ranges::transform(wanted, std::back_inserter(results),
                         [&](uint32_t id) { return values[id]; });
  return results;
}

std::vector<uint64_t> evaluate(const ScalarProgram& program, std::span<const uint64_t> args,
                               std::span<const uint32_t> wanted) {
  return evaluate(program, args, wanted, [](uint64_t, int64_t) -> uint64_t {
    assert(!"the program loads");
    return 0;
  });
}

}  // namespace nitinol
