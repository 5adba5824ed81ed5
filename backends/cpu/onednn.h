// oneDNN's matrix product, without its types.
#pragma once

#include "core/dtype.h"

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace nitinol::cpu {

/// The product of batches of matrices, as oneDNN is told of it: per operand (a, b, c) sizes and
/// strides of all dimensions. A batch dimension of size 1 repeats.
struct MatmulDescription {
  DType dtype = f32;  ///< f32 or bf16
  std::array<std::vector<int64_t>, 3> sizes;
  std::array<std::vector<int64_t>, 3> strides;
  int threads = 1;
};

/// A primitive, with all it needs to run from several threads at once.
class OneDnnMatmul {
 public:
  virtual ~OneDnnMatmul() = default;
  virtual void run(const void* a, const void* b, void* c) const = 0;
};

/// Null if oneDNN has no fast code for this on the instruction set in use. Throws Error(internal)
/// with its text.
[[nodiscard]] std::unique_ptr<OneDnnMatmul> make_onednn_matmul(
    const MatmulDescription& description);

}  // namespace nitinol::cpu
