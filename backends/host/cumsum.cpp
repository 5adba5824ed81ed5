// Each line's sums are formed in order, so threads can only share lines. A block of neighbouring
// ones (lines.h) goes along the axis together.
#include "backends/host/cumsum.h"

#include "backends/host/elements.h"
#include "backends/host/lines.h"
#include "backends/host/loop_nest.h"
#include "core/native.h"

#include <array>

namespace nitinol::host {
namespace {

/// `is_packed`: lines lie side by side, in vectors.
template <DType dtype, bool is_packed>
void add_up(const typename Elements<dtype>::Stored* x, typename Elements<dtype>::Stored* out,
            const Lines::Block& block, int64_t size) {
  const int64_t x_step = is_packed ? 1 : block.walks[0].across;
  const int64_t out_step = is_packed ? 1 : block.walks[1].across;
  std::array<typename Elements<dtype>::Value, Lines::most> sums = {};
  for (int64_t i = 0; i < size; ++i) {
    const auto* const from = x + block.walks[0].at(i, 0);
    auto* const to = out + block.walks[1].at(i, 0);
    for (int64_t c = 0; c < block.lines; ++c) {
      auto& sum = sums[static_cast<std::size_t>(c)];
      sum = native::add(sum, value_of<dtype>(from[c * x_step]));
      to[c * out_step] = stored<dtype>(sum);
    }
  }
}

}  // namespace

void cumsum(const LibraryCall& call, const Launch& launch) {
  const Lines lines(call);
  const OperandLayout& layout = call.operands[0];
  with_number_type(layout.dtype, [&](auto dtype) {
    using Stored = typename Elements<dtype.value>::Stored;
    const auto* const x = static_cast<const Stored*>(launch.buffers[0]);
    auto* const out = static_cast<Stored*>(launch.buffers[1]);
    split(lines.blocks(), lines.grain(layout), launch.threads, [&](int64_t first, int64_t last) {
      for (int64_t b = first; b < last; ++b) {
        const Lines::Block block = lines.block(b);
        const bool is_packed = block.walks[0].across == 1 && block.walks[1].across == 1;
        const auto add = is_packed ? add_up<dtype.value, true> : add_up<dtype.value, false>;
        add(x, out, block, layout.shape[call.axis]);
      }
    });
  });
}

}  // namespace nitinol::host
