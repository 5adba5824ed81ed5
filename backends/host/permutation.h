// A random order of numbers, for host backends.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out = the numbers from 0 on in the order that core/permutation.h describes, of a state {key,
/// counter}.
void permute_numbers(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
