#include "backends/host/row_copies.h"

#include "backends/host/copy_apart.h"
#include "core/kernel.h"

#include <algorithm>
#include <cstring>

namespace nitinol::host {
namespace {

/// `count` elements of `size` bytes from or to places `step` bytes apart.
void copy_run(char* apart, int64_t step, char* packed, int64_t count, int64_t size, bool is_out) {
  if (step == size) {
    std::memcpy(is_out ? apart : packed, is_out ? packed : apart,
                static_cast<std::size_t>(count * size));
    return;
  }
  if (step == 0 && !is_out) return spread(apart, size, 1, count, packed);
  const CopyApart copy = copy_apart_of(size);
  if (is_out)
    copy(packed, size, apart, step, count);
  else
    copy(apart, step, packed, size, count);
}

}  // namespace

RowCopies::RowCopies(const Kernel& kernel, const Launch& launch, const Domain& domain,
                     int64_t points, Scratch& scratch)
    : operands_(domain.operands),
      copied_(scratch.take<Copied>(domain.operands)),
      sizes_(launch.sizes.last(kernel.reduced_loops)) {
  const std::size_t loops = launch.sizes.size();
  for (std::size_t k = 0; k < domain.operands; ++k) {
    if (!walks_apart(kernel, launch, k)) continue;
    const std::size_t size = size_of(kernel.operands[k].dtype);
    copied_[count_++] = {.operand = k,
                         .size = static_cast<int64_t>(size),
                         .is_output = kernel.operands[k].role == Role::output,
                         .memory = scratch.take<char>(static_cast<std::size_t>(points) * size),
                         .strides = launch.strides.data() + (k + 1) * loops - kernel.reduced_loops};
  }
}

void RowCopies::copy(const Copied& copied, const Piece& piece, int64_t start, char* rows) const {
  Dims at = indices_at(sizes_, start);
  const int last = sizes_.size() - 1;
  for (int i = 0; i <= last; ++i) rows += at[i] * copied.strides[i] * copied.size;
  const int64_t step = copied.strides[last] * copied.size;
  char* packed = copied.memory;
  for (int64_t left = piece.length; left > 0;) {
    // A run of each row, which are often neighbours.
    const int64_t count = std::min(left, sizes_[last] - at[last]);
    for (int64_t row = 0; row < piece.row_count; ++row)
      copy_run(rows + row * piece.rows[copied.operand], step,
               packed + row * piece.length * copied.size, count, copied.size, copied.is_output);
    packed += count * copied.size;
    left -= count;
    at[last] += count;
    rows += count * step;
    for (int i = last; i > 0 && at[i] == sizes_[i]; --i) {
      rows += (copied.strides[i - 1] - at[i] * copied.strides[i]) * copied.size;
      at[i] = 0;
      ++at[i - 1];
    }
  }
}

Piece RowCopies::load(const Stage& stage, const Piece& piece, int64_t start, const Pointers& rows,
                      Pointers& pointers, TileSteps& steps) const {
  std::copy_n(piece.reduced, operands_, steps.reduced.begin());
  std::copy_n(piece.rows, operands_, steps.rows.begin());
  for (std::size_t i = 0; i < count_; ++i) {
    const Copied& copied = copied_[i];
    const std::size_t k = copied.operand;
    pointers[k] = copied.memory;
    steps.reduced[k] = copied.size;
    steps.rows[k] = copied.size * piece.length;
    const bool is_read = std::ranges::any_of(stage.sources, [k](const Source& source) {
      return source.kind == Source::Kind::operand && source.index == k;
    });
    if (!copied.is_output && is_read) copy(copied, piece, start, rows[k]);
  }
  return {.reduced = steps.reduced.data(),
          .rows = steps.rows.data(),
          .length = piece.length,
          .row_count = piece.row_count};
}

void RowCopies::store(const Stage& stage, const Piece& piece, int64_t start,
                      const Pointers& rows) const {
  for (std::size_t i = 0; i < count_; ++i) {
    const Copied& copied = copied_[i];
    const bool is_stored = std::ranges::any_of(stage.sinks, [&copied](const Sink& sink) {
      return sink.kind == Sink::Kind::store && sink.index == copied.operand;
    });
    if (copied.is_output && is_stored) copy(copied, piece, start, rows[copied.operand]);
  }
}

}  // namespace nitinol::host
