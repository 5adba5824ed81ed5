#include "core/formula.h"

#include "core/bits.h"
#include "core/host_access.h"
#include "core/loops.h"
#include "core/math.h"

namespace nitinol {

Expr rounded_to(DType dtype, const Expr& value) {
  if (dtype == f16) return round_f16(value);
  if (dtype == bf16) return round_bf16(value);
  return value;
}

Expr as_stored(const Expr& result, DType dtype) {
  const ScalarType type = compute_type(dtype);
  if (result.type == type) return rounded_to(dtype, result);
  // f32 holds all narrower numbers.
  if (rounds_to_odd(result.type, dtype) && size_of(result.type) >= 4)
    return rounded_to(dtype, to_odd_float(result));
  return rounded_to(dtype,
                    emit(*result.program, {.op = ScalarOp::convert, .type = type, .a = result.id}));
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
  return as_stored(op.formula.emit(arguments), dtype);
}

NodeFormula formula_of(const Graph& graph, const Node& node) {
  const Formula& formula = node.op->formula;
  const NodeFormula usual = {formula.emit, node.inputs.size()};
  if (formula.loops_at == nullptr) return usual;
  const Node& last = graph[node.inputs.back()];
  const DType dtype = last.spec.dtype;
  const bool is_known = last.kind == Node::Kind::constant && last.spec.shape.empty();
  const ScalarType type = compute_type(dtype);
  if (!is_known || type != stored_type(dtype)) return usual;
  const double value = double_of_bits(type, first_element(last.constant));
  const Emit emit = formula.loops_at(type, value).emit;
  return emit != nullptr ? NodeFormula{emit, node.inputs.size() - 1} : usual;
}

}  // namespace nitinol
