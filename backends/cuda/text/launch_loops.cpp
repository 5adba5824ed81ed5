#include "backends/cuda/text/launch_loops.h"

#include "core/kernel.h"

namespace nitinol::cuda {

LaunchLoops::LaunchLoops(const Kernel& kernel, const Launch& launch)
    : sizes(launch.sizes.begin(), launch.sizes.end()),
      strides(launch.strides.begin(), launch.strides.end()) {
  if (!sizes.empty()) return;
  sizes = {1};
  strides.assign(kernel.operands.size(), 0);
}

int64_t LaunchLoops::rows() const {
  int64_t product = 1;
  for (std::size_t loop = 0; loop + 1 < sizes.size(); ++loop) product *= sizes[loop];
  return product;
}

}  // namespace nitinol::cuda
