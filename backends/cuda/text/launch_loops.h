// LaunchLoops: those of a launch, of which there is always one.
#pragma once

#include "core/launch.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nitinol {
struct Kernel;
}  // namespace nitinol

namespace nitinol::cuda {

struct LaunchLoops {
  LaunchLoops(const Kernel& kernel, const Launch& launch);

  std::vector<int64_t> sizes;    ///< outermost first; of reductions, the last is the reduced one
  std::vector<int64_t> strides;  ///< [operand][loop], in elements

  [[nodiscard]] int rank() const { return static_cast<int>(sizes.size()); }
  [[nodiscard]] int64_t length() const { return sizes.back(); }
  /// Product of all sizes but the last.
  [[nodiscard]] int64_t rows() const;
  [[nodiscard]] int64_t points() const { return rows() * length(); }
  [[nodiscard]] int64_t stride(std::size_t operand, int loop) const {
    return strides[operand * sizes.size() + static_cast<std::size_t>(loop)];
  }
};

}  // namespace nitinol::cuda
