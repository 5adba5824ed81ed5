#include "backends/host/block_stack.h"

#include <bit>

namespace nitinol::host {

BlockStack::BlockStack(std::span<const Combiner> combiners, int64_t slots, int64_t blocks,
                       Scratch& scratch)
    : combiners_(combiners),
      slots_(slots),
      values_(scratch.take<char*>(combiners.size())),
      positions_(scratch.take<int64_t*>(combiners.size())) {
  const auto depth = static_cast<std::size_t>(std::bit_width(static_cast<uint64_t>(blocks)) + 1);
  const std::size_t values = depth * static_cast<std::size_t>(slots);
  for (std::size_t r = 0; r < combiners.size(); ++r) {
    values_[r] = scratch.take<char>(values * combiners[r].value_bytes);
    positions_[r] = combiners[r].has_positions ? scratch.take<int64_t>(values) : nullptr;
  }
}

void BlockStack::push(std::span<const uint16_t> reductions, int64_t rows, int64_t blocks,
                      BlockOrder order) {
  if (blocks > 1) {
    for (const uint16_t r : reductions) join_blocks(r, rows, blocks, order);
  }
  int level = std::countr_zero(static_cast<uint64_t>(blocks));
  while (depth_ > 0 && levels_[static_cast<std::size_t>(depth_ - 1)] == level) {
    join(reductions, rows, depth_ - 1);
    --depth_;
    ++level;
  }
  levels_[static_cast<std::size_t>(depth_++)] = level;
}

void BlockStack::finish(std::span<const uint16_t> reductions, int64_t rows) {
  for (; depth_ > 1; --depth_) join(reductions, rows, depth_ - 2);
  depth_ = 0;
}

void BlockStack::join(std::span<const uint16_t> reductions, int64_t rows, int into) {
  for (const uint16_t r : reductions) {
    combiners_[r].join(values_at(r, into), positions_at(r, into), values_at(r, into + 1),
                       positions_at(r, into + 1), rows);
  }
}

void BlockStack::join_blocks(std::size_t r, int64_t rows, int64_t blocks, BlockOrder order) const {
  const Combiner& combiner = combiners_[r];
  char* const all = values(r);
  if (order == BlockOrder::counted) return combiner.join_neighbours(all, blocks);
  for (int64_t half = blocks / 2; half > 0; half /= 2) {
    const int64_t count = half * rows;
    combiner.join(all, nullptr, all + count * static_cast<int64_t>(combiner.value_bytes), nullptr,
                  count);
  }
}

}  // namespace nitinol::host
