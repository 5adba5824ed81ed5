// apply: the one funnel that every operation goes through.
#pragma once

#include "core/op.h"
#include "core/tensor.h"

#include <initializer_list>

namespace nitinol {

/// The result of `op`: infers its spec, then asks the thread's interpreter. Composite ops are
/// expanded. Throws what Op::infer and the interpreter throw, with the place in the user's code.
[[nodiscard]] Tensor apply(const Op& op, Inputs inputs, const Attrs& attrs = {});
[[nodiscard]] Tensor apply(const Op& op, std::initializer_list<const Tensor*> inputs,
                           const Attrs& attrs = {});

/// Throws Error(value) that names the op if an operand is undefined; null ones are numbers.
void check_defined(const Op& op, Inputs operands);

}  // namespace nitinol
