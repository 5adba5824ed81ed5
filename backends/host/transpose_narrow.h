// Transposing blocks of a few rows or a few columns.
#pragma once

#include "backends/host/transpose.h"

namespace nitinol::host {

/// As transpose(), of elements of 4 bytes.
void transpose_narrow(const TransposedBlock& block);

}  // namespace nitinol::host
