// The text of scalar programs.

#include "core/scalar.h"

#include "core/bits.h"
#include "core/tables.h"

#include <array>
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
     {"convert", 1},    {"bitcast", 1},  {"table", 1},   {"load", 1},       {"begin_if", 1},
     {"end_if", 3}});
static_assert(op_infos.size() == static_cast<std::size_t>(ScalarOp::end_if) + 1);

}  // namespace

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
    if (instr.op == ScalarOp::load) text << " of operand " << instr.imm;
    if (instr.op == ScalarOp::table) {
      text << " of " << constant_table(static_cast<TableId>(instr.imm)).name;
    }
    text << '\n';
  }
  return text.str();
}

}  // namespace nitinol
