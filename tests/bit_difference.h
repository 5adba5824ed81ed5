// Where two tensors differ, in words.
#pragma once

#include "core/tensor.h"

#include <optional>
#include <string>

namespace nitinol {

/// What differs first, as a sentence with both values and their bits: "element 7 at [1, 2] is 0.25
/// (0x3e800000) instead of 0.5 (0x3f000000); 3 of 12 differ". Nothing if both have the same shape,
/// dtype and elements. `got` is what came.
[[nodiscard]] std::optional<std::string> bit_difference(const Tensor& got, const Tensor& expected);

}  // namespace nitinol
