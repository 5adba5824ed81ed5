// A program's operations, one after another, on the reference device.
#pragma once

#include "core/function_ref.h"
#include "tests/fuzz/programs/values.h"

#include <vector>

namespace nitinol::fuzz {

/// The results of `function(tensors, variables, scalars)`, which is recorded, so that composites
/// are what they expand to; then each operation is run on the reference device.
[[nodiscard]] std::vector<Tensor> interpreted(
    FunctionRef<std::vector<Tensor>(const std::vector<Tensor>&, const std::vector<Variable>&,
                                    const std::vector<Scalar>&)>
        function,
    const Arguments& arguments);

}  // namespace nitinol::fuzz
