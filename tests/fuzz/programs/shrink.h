// Making a failing program small.
#pragma once

#include "core/function_ref.h"
#include "tests/fuzz/programs/program.h"

namespace nitinol::fuzz {

/// A program that still fails and from which nothing can be taken away: fewer results, steps
/// (replaced by one of their operands, or by an input), inputs, plain contiguous inputs, smaller
/// sizes. Gives up after `seconds`.
[[nodiscard]] Program shrunk(Program program, FunctionRef<bool(const Program&)> fails,
                             double seconds);

}  // namespace nitinol::fuzz
