// Cubins: whether NVRTC takes the text of kernels, and what comes of it.
#pragma once

#include "tests/replay/batch.h"

#include <vector>

namespace nitinol::test {

/// Compiles all for each of these architectures, by `jobs` threads, and prints how long it took and
/// what it came to. Returns how many did not compile.
[[nodiscard]] int compile_all(const std::vector<Printed>& all,
                              const std::vector<int>& architectures, int jobs);

}  // namespace nitinol::test
