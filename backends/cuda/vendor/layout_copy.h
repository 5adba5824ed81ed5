// LayoutCopy: operands as a library takes them.
#pragma once

#include "core/executable.h"
#include "core/library.h"

#include <memory>
#include <vector>

namespace nitinol::cuda {

class Gpu;

/// Copies all elements of an operand from one layout to another.
class LayoutCopy {
 public:
  LayoutCopy(const Gpu& gpu, const OperandLayout& from, const Strides& to);
  void run(void* from, void* to) const;

 private:
  Dims sizes_;
  std::vector<int64_t> strides_;
  std::shared_ptr<const Executable> executable_;
};

}  // namespace nitinol::cuda
