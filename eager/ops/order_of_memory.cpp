#include "eager/ops/order_of_memory.h"

#include "eager/apply.h"
#include "eager/ops/view.h"

#include <algorithm>
#include <array>
#include <functional>

namespace nitinol {

Reduced in_order_of_memory(const Tensor& x, const Dims& axes) {
  const Strides& strides = x.internals().strides;
  if (x.rank() < 2 || is_contiguous(x.shape(), strides) || !runs_at_once(std::array{&x}))
    return {x, axes};
  Dims order;
  for (int i = 0; i < x.rank(); ++i) order.push_back(i);
  std::ranges::stable_sort(order, std::greater(),
                           [&](int64_t axis) { return strides[static_cast<int>(axis)]; });
  Dims moved;
  int64_t last_kept = -1;
  for (int i = 0; i < order.size(); ++i) {
    if (std::ranges::find(axes, order[i]) != axes.end()) {
      moved.push_back(i);
      continue;
    }
    if (order[i] < last_kept) return {x, axes};
    last_kept = order[i];
  }
  return {permute(x, order), moved};
}

}  // namespace nitinol
