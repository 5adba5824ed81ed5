// Formulas as scalar instructions, with the roundings that dtypes ask for.
#pragma once

#include "core/op.h"

#include <span>

namespace nitinol {

/// The value of an elementwise or create op at one point, as a tensor of `dtype` would hold it:
/// `op`'s formula of `arguments` (in their dtypes' compute types), converted to the compute type of
/// `dtype` and rounded to it. So cast is the identity formula.
[[nodiscard]] Expr apply_formula(const Op& op, std::span<const Expr> arguments, DType dtype);

/// `value` (of compute type) after a round trip through memory of `dtype`: f16 and bf16 round,
/// others keep it.
[[nodiscard]] Expr rounded_to(DType dtype, const Expr& value);

}  // namespace nitinol
