// Lines in order, for host backends: sort, argsort and the first few of it.
#pragma once

#include "core/launch.h"
#include "core/library.h"

namespace nitinol::host {

/// out = the elements of x along the axis in ascending (is_descending: descending) order. NaN
/// counts as greater than all numbers; what compares equal, -0 and 0 too, keeps its order and its
/// bits.
void sort(const LibraryCall& call, const Launch& launch);

/// out = where along the axis these elements come from: the first ones, where out is shorter.
void argsort(const LibraryCall& call, const Launch& launch);

}  // namespace nitinol::host
