// Numbers for trials: whether two ways of asking oneDNN for one result give the same bits is
// nowhere promised, so both are run once. In which order a primitive adds depends on shapes,
// layouts, threads and the machine, all of which a trial has from the call, and not on numbers.
#pragma once

#include "core/storage.h"

#include <cstddef>
#include <cstdint>

namespace nitinol::cpu {

/// f32 of both signs and of magnitudes from 2^-8 to 2^8, so that sums round at each step.
[[nodiscard]] StorageHandle trial_numbers(std::size_t count, uint64_t seed);

}  // namespace nitinol::cpu
