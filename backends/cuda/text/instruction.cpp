// What C leaves undefined or CUDA and the host do differently is spelt out: integers are computed
// unsigned and cut to their type, shift counts are masked, conversions saturate, divisors are never
// 0 or -1.

#include "backends/cuda/text/instruction.h"

#include "core/error.h"

#include <fmt/format.h>

#include <cmath>

namespace nitinol::cuda {
namespace {

int bits_in(ScalarType type) {
  return 8 * size_of(type);
}

/// The unsigned type in which integers of `type` are computed.
std::string_view wide_word(ScalarType type) {
  return size_of(type) == 8 ? "u64" : "u32";
}

class Printer {
 public:
  Printer(const ScalarInstr& instr, const Operands& operands)
      : instr_(instr),
        type_(instr.type),
        from_(operands.from),
        a_(operands.names[0]),
        b_(operands.names[1]),
        c_(operands.names[2]) {}

  [[nodiscard]] std::string print() const {
    switch (instr_.op) {
      case ScalarOp::constant:
        return literal(type_, instr_.imm);
      case ScalarOp::add:
        return arithmetic('+');
      case ScalarOp::sub:
        return arithmetic('-');
      case ScalarOp::mul:
        return arithmetic('*');
      case ScalarOp::div:
        return fmt::format("div_of({}, {})", a_, b_);
      case ScalarOp::fma:
        return fmt::format("fma_of({}, {}, {})", a_, b_, c_);
      case ScalarOp::neg:
        return is_float(type_) ? "-" + a_ : negated();
      case ScalarOp::abs:
        if (is_float(type_)) return fmt::format("abs_of({})", a_);
        return is_signed_integer(type_) ? fmt::format("{} < 0 ? {} : {}", a_, negated(), a_) : a_;
      case ScalarOp::sqrt:
        return fmt::format("sqrt_of({})", a_);
      case ScalarOp::floor:
        return fmt::format("floor_of({})", a_);
      case ScalarOp::ceil:
        return fmt::format("ceil_of({})", a_);
      case ScalarOp::trunc:
        return fmt::format("trunc_of({})", a_);
      case ScalarOp::round_even:
        return fmt::format("round_even({})", a_);
      case ScalarOp::round_f16:
        return fmt::format("round_half({})", a_);
      case ScalarOp::round_bf16:
        return fmt::format("round_bfloat({})", a_);
      case ScalarOp::int_div:
        return fmt::format("{}({}, {})", is_signed_integer(type_) ? "signed_quotient" : "quotient",
                           a_, b_);
      case ScalarOp::int_rem:
        return cut(fmt::format("({0}){1} - ({0}){2}({1}, {3}) * ({0}){3}", wide_word(type_), a_,
                               is_signed_integer(type_) ? "signed_quotient" : "quotient", b_));
      case ScalarOp::mul_high:
        return mul_high();
      case ScalarOp::eq:
        return fmt::format("{} == {}", a_, b_);
      case ScalarOp::ne:
        return fmt::format("{} != {}", a_, b_);
      case ScalarOp::lt:
        return fmt::format("{} < {}", a_, b_);
      case ScalarOp::le:
        return fmt::format("{} <= {}", a_, b_);
      case ScalarOp::bit_and:
        return cut(fmt::format("{} & {}", a_, b_));
      case ScalarOp::bit_or:
        return cut(fmt::format("{} | {}", a_, b_));
      case ScalarOp::bit_xor:
        return cut(fmt::format("{} ^ {}", a_, b_));
      case ScalarOp::bit_not:
        return type_ == ScalarType::pred ? "!" + a_ : cut("~" + a_);
      case ScalarOp::shl:
        return cut(fmt::format("({}){} << {}", wide_word(type_), a_, shift_count()));
      case ScalarOp::shr:
        return cut(fmt::format("{} >> {}", a_, shift_count()));
      case ScalarOp::select:
        return fmt::format("{} ? {} : {}", c_, a_, b_);
      case ScalarOp::convert:
        return convert();
      case ScalarOp::bitcast:
        return bitcast();
      case ScalarOp::table:
        return fmt::format("table{}[{}]", instr_.imm, a_);
      case ScalarOp::argument:
      case ScalarOp::load:
      case ScalarOp::begin_if:
      case ScalarOp::end_if:
        break;
    }
    throw Error(ErrorKind::internal,
                {.where = "print",
                 .what = fmt::format("the instruction {} is no expression", name_of(instr_.op))});
  }

 private:
  /// Cut to the bits of the type.
  [[nodiscard]] std::string cut(const std::string& wide) const {
    return fmt::format("({})({})", word_of(type_), wide);
  }
  [[nodiscard]] std::string negated() const {
    return cut(fmt::format("0 - ({}){}", wide_word(type_), a_));
  }
  [[nodiscard]] std::string arithmetic(char sign) const {
    if (is_float(type_)) return fmt::format("{} {} {}", a_, sign, b_);
    return cut(fmt::format("({0}){1} {2} ({0}){3}", wide_word(type_), a_, sign, b_));
  }
  [[nodiscard]] std::string shift_count() const {
    return fmt::format("(u32)({} & {})", b_, bits_in(type_) - 1);
  }

  [[nodiscard]] std::string mul_high() const {
    if (size_of(type_) == 8) return fmt::format("high_of({}, {})", a_, b_);
    return cut(fmt::format("({0}){1} * ({0}){2} >> {3}", is_signed_integer(type_) ? "i64" : "u64",
                           a_, b_, bits_in(type_)));
  }

  [[nodiscard]] std::string convert() const {
    if (type_ == from_) return a_;
    if (type_ == ScalarType::pred) return a_ + " != 0";
    if (is_float(from_) && !is_float(type_)) return saturated();
    return fmt::format("({}){}", word_of(type_), a_);
  }
  [[nodiscard]] std::string saturated() const {
    const int bits = bits_in(type_);
    const double bound = std::ldexp(1.0, bits - 1);
    const bool negates = is_signed_integer(type_);
    const uint64_t all = ~uint64_t{0} >> (64 - bits);
    return fmt::format("saturated<{}, {}>({}, {:.1f}, {:.1f}, {}, {})", word_of(type_),
                       word_of(from_), a_, negates ? -bound : 0.0, negates ? bound : 2 * bound,
                       literal(type_, negates ? all ^ all >> 1 : 0),
                       literal(type_, negates ? all >> 1 : all));
  }

  [[nodiscard]] std::string bitcast() const {
    if (type_ == from_) return a_;
    if (type_ == ScalarType::pred) return a_ + " != 0";
    if (type_ == ScalarType::f32) return fmt::format("f32_of((u32){})", a_);
    if (type_ == ScalarType::f64) return fmt::format("f64_of((u64){})", a_);
    if (is_float(from_)) return fmt::format("({})bits_of({})", word_of(type_), a_);
    return fmt::format("({}){}", word_of(type_), a_);
  }

  const ScalarInstr& instr_;
  const ScalarType type_, from_;
  const std::string &a_, &b_, &c_;
};

}  // namespace

std::string_view word_of(ScalarType type) {
  switch (type) {
    case ScalarType::pred:
      return "bool";
    case ScalarType::f32:
      return "float";
    case ScalarType::f64:
      return "double";
    default:
      return name_of(type);
  }
}

std::string_view stored_word(DType dtype) {
  return word_of(stored_type(dtype));
}

std::string literal(ScalarType type, uint64_t bits) {
  switch (type) {
    case ScalarType::pred:
      return bits != 0 ? "true" : "false";
    case ScalarType::f32:
      return fmt::format("f32_of({:#x}u)", bits);
    case ScalarType::f64:
      return fmt::format("f64_of({:#x}ull)", bits);
    default:
      return fmt::format("({}){:#x}ull", word_of(type), bits);
  }
}

std::string decoded(DType dtype, const std::string& stored) {
  if (dtype == boolean) return fmt::format("({} != 0)", stored);
  if (dtype == f16) return fmt::format("float_of_half({})", stored);
  if (dtype == bf16) return fmt::format("float_of_bfloat({})", stored);
  return stored;
}

std::string encoded(DType dtype, const std::string& value) {
  if (dtype == boolean) return fmt::format("(u8)({} ? 1 : 0)", value);
  if (dtype == f16) return fmt::format("half_of_float({})", value);
  if (dtype == bf16) return fmt::format("bfloat_of_float({})", value);
  return value;
}

std::string expression(const ScalarInstr& instr, const Operands& operands) {
  return Printer(instr, operands).print();
}

std::string table_text(uint64_t id) {
  std::string words;
  for (const uint32_t word : constant_table(static_cast<TableId>(id)).words)
    words += fmt::format("{}{:#x}u", words.empty() ? "" : ", ", word);
  return fmt::format("TABLE u32 table{}[] = {{{}}};\n", id, words);
}

}  // namespace nitinol::cuda
