// What a mask chooses, for host backends.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out = the rows of x whose mask is true, one after another: as many as out has, and then zeros.
void compress(const LibraryCall& call, const Launch& launch);

/// out = where the mask is true: as many places as out has, and then -1.
void positions(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
