// Loops over steps of time, as tracing unrolls them.
#pragma once

#include "tests/fuzz/programs/program.h"

#include <cstdint>
#include <optional>

namespace nitinol::fuzz {

/// The body a few times, each from what the time before has given in the place of one of its
/// inputs, and often from the next part of another one. None if the body gives nothing that is like
/// an input which it reads, or ends with an Error.
[[nodiscard]] std::optional<Program> unrolled(const Program& body, uint64_t seed);

}  // namespace nitinol::fuzz
