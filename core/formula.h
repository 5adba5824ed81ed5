// Formulas as scalar instructions, with the roundings that dtypes ask for.
#pragma once

#include "core/graph.h"
#include "core/op.h"

#include <cstddef>
#include <span>

namespace nitinol {

/// The value of an elementwise or create op at one point, as a tensor of `dtype` would hold it:
/// `op`'s formula of `arguments` (in their dtypes' compute types), converted to the compute type of
/// `dtype` and rounded to it. So cast is the identity formula.
[[nodiscard]] Expr apply_formula(const Op& op, std::span<const Expr> arguments, DType dtype);

/// A formula's result converted to the compute type of `dtype` and rounded to it.
[[nodiscard]] Expr as_stored(const Expr& result, DType dtype);

/// Formula::emit.
using Emit = Expr (*)(std::span<const Expr> arguments);

/// The instructions of a node that computes a formula. If its last operand is a number that the
/// graph knows, and the op has shorter ones for that: those, which do not read it.
struct NodeFormula {
  Emit emit;
  std::size_t arguments;  ///< how many of the operands it reads
};
[[nodiscard]] NodeFormula formula_of(const Graph& graph, const Node& node);

/// What an index names.
struct Row {
  Expr distance;  ///< of its element from that of index 0, in elements; 0 if there is none
  Expr exists;    ///< pred
};

/// Where one of `rows` elements, `step` after each other, is that `index` names; all i64.
[[nodiscard]] Row row_of(const Expr& index, const Expr& rows, const Expr& step);

/// What is there of a kernel's operand of `dtype`, in its compute type.
[[nodiscard]] Expr element_at(const Row& row, uint16_t operand, DType dtype);

/// `value` (of compute type) after a round trip through memory of `dtype`: f16 and bf16 round,
/// others keep it.
[[nodiscard]] Expr rounded_to(DType dtype, const Expr& value);

}  // namespace nitinol
