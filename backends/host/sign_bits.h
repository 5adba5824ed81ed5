// neg and abs of f16 and bf16, on the bits that are in memory.
#pragma once

#include "core/dtype.h"
#include "core/loops.h"

#include <cstdint>

namespace nitinol::host {

/// What becomes of a sign.
enum class SignChange : uint8_t { flip, drop };

/// From the 16 bits of an element of `dtype`, f16 or bf16, to those of the result: what the way
/// over f32 gives. For current_isa().
[[nodiscard]] Loop sign_loop_of(SignChange change, DType dtype);

}  // namespace nitinol::host
