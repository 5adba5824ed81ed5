// Rows: the functions that GPU kernels are timed on, as the launches of their Plans.
#pragma once

#include "tests/cuda/case.h"

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace nitinol::test {

/// A launch whose operands lie in the host's memory, and what the cpu made of it.
struct RowLaunch {
  Kernel kernel;
  std::vector<int64_t> sizes, strides, offsets;
  std::vector<uint64_t> scalars;
  std::vector<void*> buffers;
  [[nodiscard]] Launch launch(const std::vector<void*>& at) const;
};

struct Row {
  std::string name;
  std::vector<RowLaunch> launches;
  /// Instructions of all programs for one element, and bytes read and written by all launches.
  double bytes = 0, elements = 0;
};

/// Runs each function compiled on the host and hands its row to `take`, while the memory of its
/// operands lives. `names`: prefixes of those that are wanted; empty means all.
void for_each_row(const std::vector<std::string>& names,
                  const std::function<void(const Row&)>& take);

/// The same for a training step of a perceptron of two layers: cross entropy, gradients and Adam.
void step_row(const std::function<void(const Row&)>& take);

}  // namespace nitinol::test
