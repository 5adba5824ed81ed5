// Formulas as scalar instructions, with the roundings that dtypes ask for.
#pragma once

#include "core/op.h"

#include <span>

namespace nitinol {

/// The value of an elementwise or create op at one point, as a tensor of `dtype` would hold it:
/// `op`'s formula of `arguments` (in their dtypes' compute types), converted to the compute type of
/// `dtype` and rounded to it. So cast is the identity formula.
[[nodiscard]] Expr apply_formula(const Op& op, std::span<const Expr> arguments, DType dtype);

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
