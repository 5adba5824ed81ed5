// What programs may do besides the vocabulary: public functions that are no ops.
#pragma once

#include "core/op.h"

#include <span>

namespace nitinol::fuzz {

/// As composite ops, so that they are drawn, run and printed like any other. Those of `fuzz.host`
/// work where memory is the host's.
[[nodiscard]] std::span<const Op* const> extra_ops();

}  // namespace nitinol::fuzz
