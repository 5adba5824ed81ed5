// Cubins: whether NVRTC takes the text of kernels, and what comes of it.
#pragma once

#include "tests/replay/batch.h"

#include <cstddef>
#include <vector>

namespace nitinol::test {

struct CubinOptions {
  std::vector<int> architectures;
  bool is_short =
      false;     ///< each text for one of them, and only if it says there what none before did
  int jobs = 2;  ///< threads
};

/// Compiles and prints how long it took and what it came to. Returns how many did not compile.
[[nodiscard]] int compile_all(const std::vector<Printed>& all, const CubinOptions& options);

}  // namespace nitinol::test
