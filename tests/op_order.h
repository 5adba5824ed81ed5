// Sorting, masks and scatter in the table of ops: their samples, and what they should give.
#pragma once

#include "tests/op_reference.h"
#include "tests/op_samples.h"

#include <span>
#include <vector>

namespace nitinol::test {

/// Of sort and argsort.
[[nodiscard]] std::vector<Sample> sort_samples(const Op& op);
[[nodiscard]] std::vector<Sample> search_samples(const Op& op);
/// Of masked_select and nonzero.
[[nodiscard]] std::vector<Sample> mask_samples(const Op& op);

[[nodiscard]] std::vector<Sample> scatter_samples(const Op& op);

/// Of any of these.
[[nodiscard]] Elements ordered(const Op& op, std::span<const Elements> inputs, const Attrs& attrs,
                               const Spec& result);

}  // namespace nitinol::test
