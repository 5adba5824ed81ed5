// Work of the host, shared by threads.
#pragma once

#include "core/function_ref.h"

#include <cstdint>

namespace nitinol::host {

/// parallel_for over [0, count) in pieces of at least `grain`, on at most `threads` threads.
void split(int64_t count, int64_t grain, int threads, FunctionRef<void(int64_t, int64_t)> body);

}  // namespace nitinol::host
