// Ops over groups of elements in the table of ops, reductions and what normalises: samples of the
// latter, and what they should give.
#pragma once

#include "tests/op_reference.h"
#include "tests/op_samples.h"

#include <span>
#include <vector>

namespace nitinol::test {

[[nodiscard]] std::vector<Sample> layer_norm_samples(const Op& op);
[[nodiscard]] std::vector<Sample> rms_norm_samples(const Op& op);
[[nodiscard]] std::vector<Sample> group_norm_samples(const Op& op);
[[nodiscard]] std::vector<Sample> vector_norm_samples(const Op& op);
[[nodiscard]] std::vector<Sample> vecdot_samples(const Op& op);
/// Of a batch [4, 3, 5] with its features along each but the first axis.
[[nodiscard]] std::vector<Sample> batch_samples(const Op& op);

[[nodiscard]] Elements reduction(const Op& op, const Elements& x, const Attrs& attrs,
                                 const Spec& spec);
/// softmax, log_softmax, layer_norm and rms_norm: each element from its group.
[[nodiscard]] Elements normalisation(const Op& op, std::span<const Elements> inputs,
                                     const Attrs& attrs);
/// vecdot, of operands of one shape.
[[nodiscard]] Elements dotted(std::span<const Elements> inputs, const Attrs& attrs,
                              const Spec& spec);
[[nodiscard]] Elements of_groups(std::span<const Elements> inputs, const Attrs& attrs);
/// batch_mean and its like: of each feature.
[[nodiscard]] Elements of_batch(const Op& op, std::span<const Elements> inputs, const Attrs& attrs,
                                const Spec& spec);

}  // namespace nitinol::test
