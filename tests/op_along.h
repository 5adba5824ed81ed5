// Ops along one axis in the table of ops: their samples, and what they should give.
#pragma once

#include "tests/op_reference.h"
#include "tests/op_samples.h"

#include <span>
#include <vector>

namespace nitinol::test {

[[nodiscard]] std::vector<Sample> gather_samples(const Op& op);
[[nodiscard]] std::vector<Sample> scatter_add_along_samples(const Op& op);
[[nodiscard]] std::vector<Sample> scan_samples(const Op& op);

[[nodiscard]] Elements gathered(std::span<const Elements> inputs, const Attrs& attrs,
                                const Spec& result);
[[nodiscard]] Elements scattered_along(std::span<const Elements> inputs, const Attrs& attrs,
                                       const Spec& result);
[[nodiscard]] Elements scanned(const Op& op, const Elements& x, const Attrs& attrs);
/// log_likelihood, and its gradient.
[[nodiscard]] Elements likelihood(std::span<const Elements> inputs, const Attrs& attrs,
                                  const Spec& result);

}  // namespace nitinol::test
