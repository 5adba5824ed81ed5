#include "backends/host/block_stack.h"

namespace nitinol::host {

void BlockStack::join_blocks(std::span<const uint16_t> reductions, int64_t rows, int64_t blocks,
                             BlockOrder order) const {
  for (const uint16_t r : reductions) {
    const Combiner& combiner = combiners_[r];
    char* const all = values(r);
    if (order == BlockOrder::counted) {
      combiner.join_neighbours(all, blocks);
      continue;
    }
    for (int64_t half = blocks / 2; half > 0; half /= 2) {
      const int64_t count = half * rows;
      combiner.join(all, nullptr, all + count * static_cast<int64_t>(combiner.value_bytes), nullptr,
                    count);
    }
  }
}

}  // namespace nitinol::host
