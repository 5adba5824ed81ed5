#include "core/formula.h"

#include "core/math.h"

namespace nitinol {

Expr rounded_to(DType dtype, const Expr& value) {
  if (dtype == f16) return round_f16(value);
  if (dtype == bf16) return round_bf16(value);
  return value;
}

Row row_of(const Expr& index, const Expr& rows, const Expr& step) {
  const Expr row = select(index < 0, index + rows, index);
  const Expr exists = (row >= 0) & (row < rows);
  return {.distance = select(exists, row, 0) * step, .exists = exists};
}

Expr element_at(const Row& row, uint16_t operand, DType dtype) {
  return emit(
      *row.distance.program,
      {.op = ScalarOp::load, .type = compute_type(dtype), .a = row.distance.id, .imm = operand});
}

Expr apply_formula(const Op& op, std::span<const Expr> arguments, DType dtype) {
  const Expr result = op.formula.emit(arguments);
  const ScalarType type = compute_type(dtype);
  if (result.type == type) return rounded_to(dtype, result);
  const bool is_wide = result.type == ScalarType::f64 || result.type == ScalarType::i64 ||
                       result.type == ScalarType::i32;
  if (is_wide && type == ScalarType::f32 && dtype != f32)
    return rounded_to(dtype, to_odd_float(result));
  return rounded_to(dtype,
                    emit(*result.program, {.op = ScalarOp::convert, .type = type, .a = result.id}));
}

}  // namespace nitinol
