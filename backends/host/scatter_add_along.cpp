// Goes along blocks of neighbouring lines (lines.h); any thread may take any of them, because
// nothing is written across lines.
//
// Sums are formed in the dtype that is computed in, beside the result: for so many lines at a time
// that they stay in the cache.
#include "backends/host/scatter_add_along.h"

#include "backends/host/elements.h"
#include "backends/host/indices.h"
#include "backends/host/lines.h"
#include "backends/host/split.h"
#include "core/native.h"

#include <algorithm>
#include <vector>

namespace nitinol::host {
namespace {

constexpr int64_t sums_in_cache = 32768;

struct Operands {
  Operands(const LibraryCall& call, const Launch& launch)
      : data(static_cast<const char*>(launch.buffers[0])),
        indices(static_cast<const int64_t*>(launch.buffers[1])),
        out(static_cast<char*>(launch.buffers[2])),
        count(call.operands[1].shape[call.axis]),
        rows(call.operands[2].shape[call.axis]) {}
  const char* data;
  const int64_t* indices;
  char* out;
  int64_t count;  ///< indices of a line
  int64_t rows;   ///< elements of a line that they choose from
};

/// sums[c] += values[c * step] for n lines that an index puts together.
template <DType dtype>
void add_lines(typename Elements<dtype>::Value* sums,
               const typename Elements<dtype>::Stored* values, int64_t step, int64_t n) {
  if (step == 1) {
    for (int64_t c = 0; c < n; ++c) sums[c] = native::add(sums[c], value_of<dtype>(values[c]));
  } else {
    for (int64_t c = 0; c < n; ++c)
      sums[c] = native::add(sums[c], value_of<dtype>(values[c * step]));
  }
}

/// Sums lines [first, last) of a block in `sums`, then writes them. Notes wrong indices.
template <DType dtype>
void scatter_lines(const Operands& operands, const Lines::Block& block, int64_t first, int64_t last,
                   std::vector<typename Elements<dtype>::Value>& sums, WrongIndex& wrong) {
  using Stored = typename Elements<dtype>::Stored;
  const auto* const from = reinterpret_cast<const Stored*>(operands.data);
  auto* const to = reinterpret_cast<Stored*>(operands.out);
  const auto& [values, indices, out] = block.walks;
  const int64_t width = last - first;
  sums.assign(static_cast<std::size_t>(operands.rows * width), 0);
  for (int64_t i = 0; i < operands.count; ++i) {
    if (indices.across == 0) {  // one for all lines
      const int64_t index = operands.indices[indices.at(i, first)];
      const int64_t row = row_of(index, operands.rows);
      if (row < 0) return wrong.note(index);
      add_lines<dtype>(sums.data() + row * width, from + values.at(i, first), values.across, width);
      continue;
    }
    for (int64_t c = first; c < last; ++c) {
      const int64_t index = operands.indices[indices.at(i, c)];
      const int64_t row = row_of(index, operands.rows);
      if (row < 0) return wrong.note(index);
      auto& sum = sums[static_cast<std::size_t>(row * width + c - first)];
      sum = native::add(sum, value_of<dtype>(from[values.at(i, c)]));
    }
  }
  for (int64_t row = 0; row < operands.rows; ++row) {
    for (int64_t c = first; c < last; ++c) {
      to[out.at(row, c)] = stored<dtype>(sums[static_cast<std::size_t>(row * width + c - first)]);
    }
  }
}

template <DType dtype>
void scatter_block(const Operands& operands, const Lines::Block& block,
                   std::vector<typename Elements<dtype>::Value>& sums, WrongIndex& wrong) {
  const int64_t width = std::max<int64_t>(sums_in_cache / std::max<int64_t>(operands.rows, 1), 1);
  for (int64_t c = 0; c < block.lines; c += width)
    scatter_lines<dtype>(operands, block, c, std::min(c + width, block.lines), sums, wrong);
}

}  // namespace

void scatter_add_along(const LibraryCall& call, const Launch& launch) {
  const Lines lines(call);
  const Operands operands(call, launch);
  const int64_t grain = std::min(lines.grain(call.operands[1]), lines.grain(call.operands[2]));
  WrongIndex wrong;
  with_number_type(call.operands[0].dtype, [&](auto dtype) {
    split(lines.blocks(), grain, launch.threads, [&](int64_t first, int64_t last) {
      std::vector<typename Elements<dtype.value>::Value> sums;
      for (int64_t b = first; b < last; ++b)
        scatter_block<dtype.value>(operands, lines.block(b), sums, wrong);
    });
  });
  wrong.report("scatter_add_along", operands.rows, launch);
}

}  // namespace nitinol::host
