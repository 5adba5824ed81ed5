#include "backends/cuda/vendor/layout_copy.h"

#include "backends/cuda/runtime/gpu.h"
#include "core/backend.h"
#include "core/copy_kernel.h"
#include "core/executables.h"
#include "core/loop_nest.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>

namespace nitinol::cuda {

LayoutCopy::LayoutCopy(const Gpu& gpu, const OperandLayout& from, const Strides& to) {
  LoopNest<std::array<Strides, 2>> nest;
  Dims order = Dims::filled(to.size(), 0);
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](int64_t a, int64_t b) {
    return to[static_cast<int>(a)] > to[static_cast<int>(b)];
  });
  for (const int64_t axis : order) {
    const auto i = static_cast<int>(axis);
    nest.sizes.push_back(to[i] == 0 ? 1 : from.shape[i]);  // repeated here as there
    nest.strides[0].push_back(from.strides[i]);
    nest.strides[1].push_back(to[i]);
  }
  nest.simplify(nest.sizes.size());
  nest.add_point_if_empty();
  sizes_ = nest.sizes;
  for (const Strides& strides : nest.strides)
    strides_.insert(strides_.end(), strides.begin(), strides.end());
  const int inner = nest.innermost(Order::none);
  const Device device = {.kind = Device::Kind::cuda, .index = static_cast<int8_t>(gpu.number())};
  Kernel kernel = copy_kernel(from.dtype);
  for (std::size_t k = 0; k < kernel.operands.size(); ++k)
    kernel.operands[k].inner = class_of(nest.strides[k][inner]);
  executable_ = executable_for(backend(device), kernel);
}

void LayoutCopy::run(void* from, void* to) const {
  const std::array<void*, 2> buffers = {from, to};
  executable_->launch(
      {.buffers = buffers, .sizes = sizes_, .strides = strides_, .offsets = {}, .scalars = {}});
}

}  // namespace nitinol::cuda
