// The file in which `perf` looks for the names of generated functions.
#pragma once

#include <cstddef>
#include <string_view>

namespace nitinol::cpu {

/// Adds a line to /tmp/perf-<process>.map if NITINOL_PERF is 1. The file is made readable for this
/// user alone; what is there already must be a plain file of this user's with no other name, so
/// that nobody who may write to /tmp can redirect what is written. Otherwise a warning is logged,
/// once, and nothing is written. Any thread.
void tell_perf(std::string_view function, const void* code, std::size_t bytes);

}  // namespace nitinol::cpu
