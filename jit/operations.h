// How much arithmetic an op is, by its kernel or the library call that does it.
#pragma once

#include "core/op.h"

#include <span>

namespace nitinol::jit {

/// Arithmetic operations of one application, which need not have been made: two for each product of
/// a matmul, one for each element of a reduction, instructions of other formulas. 0 for views, and
/// for what is not known. `inputs` need shapes only.
[[nodiscard]] double operations_of(const Op& op, std::span<const Spec> inputs, const Attrs& attrs,
                                   std::span<const Spec> results);

}  // namespace nitinol::jit
