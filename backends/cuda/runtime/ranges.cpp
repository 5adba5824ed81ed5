// A tool that wants ranges says so to the process by NVTX_INJECTION64_PATH, as Nsight Systems does,
// and NVTX's library opens the tool's. Without it, nothing is opened.
#include "backends/cuda/runtime/ranges.h"

#include "backends/cuda/runtime/libraries.h"

#include <fmt/format.h>

namespace nitinol::cuda {

bool NamedRange::is_shown() {
  static const bool is_there = nvtx() != nullptr;
  return is_there;
}

void NamedRange::begin(std::string_view name) {
  nvtx()->nvtxRangePushA(fmt::format("nitinol::{}", name).c_str());
  is_begun_ = true;
}

void NamedRange::end() {
  nvtx()->nvtxRangePop();
}

}  // namespace nitinol::cuda
