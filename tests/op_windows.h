// Convolutions and pooling in the table of ops: their samples, and what they should give.
#pragma once

#include "tests/op_reference.h"
#include "tests/op_samples.h"

#include <span>
#include <vector>

namespace nitinol::test {

[[nodiscard]] std::vector<Sample> convolution_samples(const Op& op);
[[nodiscard]] std::vector<Sample> pool_samples(const Op& op);

[[nodiscard]] Elements convolved(const Op& op, std::span<const Elements> inputs, const Attrs& attrs,
                                 const Spec& result);
[[nodiscard]] Elements pooled(const Op& op, std::span<const Elements> inputs, const Attrs& attrs,
                              const Spec& result);

}  // namespace nitinol::test
