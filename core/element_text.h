// One tensor element as text that reads back to the same bits.
#pragma once

#include "core/dtype.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace nitinol {

/// The shortest text that reads back to `bits`, the stored pattern of an element (zero-extended):
/// "true", "-7", "0.1",
/// "-0", "inf", "nan"; a NaN that is not the positive quiet one without payload shows its bits:
/// "nan(0xffc00000)".
[[nodiscard]] std::string element_text(DType dtype, uint64_t bits);

/// The stored pattern of the element that `text` says, rounded to nearest even if it must be;
/// nothing if `text` is not an element of that dtype, or out of its range.
[[nodiscard]] std::optional<uint64_t> element_bits(DType dtype, std::string_view text);

}  // namespace nitinol
