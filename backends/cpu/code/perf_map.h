// The file in which `perf` looks for the names of generated functions.
#pragma once

#include "backends/cpu/code/code_symbols.h"

namespace nitinol::cpu {

/// Adds the functions to /tmp/perf-<process>.map if NITINOL_PERF is 1. The file is made readable
/// for this user alone; what is there already must be a plain file of this user's with no other
/// name, so that nobody who may write to /tmp can redirect what is written. Otherwise a warning is
/// logged, once, and nothing is written. Any thread.
void map_for_perf(const CodeSymbols& symbols);

}  // namespace nitinol::cpu
