// Ops over groups of elements in the table of ops, reductions and what normalises: what they should
// give.
#pragma once

#include "tests/op_reference.h"

#include <span>

namespace nitinol::test {

[[nodiscard]] Elements reduction(const Op& op, const Elements& x, const Attrs& attrs,
                                 const Spec& spec);
/// softmax, log_softmax, layer_norm and rms_norm: each element from its group.
[[nodiscard]] Elements normalisation(const Op& op, std::span<const Elements> inputs,
                                     const Attrs& attrs);
/// batch_mean and its like: of each feature.
[[nodiscard]] Elements of_batch(const Op& op, std::span<const Elements> inputs, const Attrs& attrs,
                                const Spec& spec);

}  // namespace nitinol::test
