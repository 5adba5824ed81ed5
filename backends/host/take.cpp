// Each index copies one row of the table. A row is walked as its innermost loop, which is one
// memcpy where both sides are contiguous, inside the loops above it.

#include "backends/host/take.h"

#include "backends/host/indices.h"
#include "backends/host/split.h"

#include <algorithm>
#include <cstring>

namespace nitinol::host {
namespace {

class Take {
 public:
  Take(const LibraryCall& call, const Launch& launch)
      : table_(call.operands[0]),
        index_shape_(call.operands[1].shape),
        out_(call.operands[2]),
        indices_(call.operands[1], launch.buffers[1], table_.shape[0]),
        element_(static_cast<int64_t>(size_of(table_.dtype))),
        from_(static_cast<const char*>(launch.buffers[0])),
        to_(static_cast<char*>(launch.buffers[2])) {
    // The innermost loops of a row that both sides walk without gaps are one piece.
    while (piece_ > 1 && fits(piece_ - 1)) --piece_;
    piece_bytes_ = product(table_.shape, piece_, table_.shape.size()) * element_;
  }

  [[nodiscard]] int64_t count() const { return indices_.count(); }
  [[nodiscard]] int64_t row_elements() const {
    return product(table_.shape, 1, table_.shape.size());
  }

  /// Copies the rows of indices [first, last). Returns false at the first that is out of range.
  [[nodiscard]] bool run(int64_t first, int64_t last, int64_t& wrong) const {
    for (int64_t i = first; i < last; ++i) {
      const int64_t row = indices_.row(i);
      if (row < 0) {
        wrong = indices_.given(i);
        return false;
      }
      copy(1, from_ + row * table_.strides[0] * element_, to_ + byte_offset(i, index_shape_, out_));
    }
    return true;
  }

 private:
  [[nodiscard]] int out_axis(int table_axis) const { return table_axis - 1 + index_shape_.size(); }

  [[nodiscard]] bool fits(int axis) const {
    const int64_t expected = product(table_.shape, axis + 1, table_.shape.size());
    return table_.shape[axis] == 1 ||
           (table_.strides[axis] == expected && out_.strides[out_axis(axis)] == expected);
  }

  void copy(int axis, const char* from, char* to) const {
    if (axis == piece_) {
      std::memcpy(to, from, static_cast<std::size_t>(piece_bytes_));
      return;
    }
    for (int64_t i = 0; i < table_.shape[axis]; ++i) {
      copy(axis + 1, from + i * table_.strides[axis] * element_,
           to + i * out_.strides[out_axis(axis)] * element_);
    }
  }

  const OperandLayout& table_;
  const Shape& index_shape_;
  const OperandLayout& out_;
  RowIndices indices_;
  int64_t element_;
  const char* from_;
  char* to_;
  int piece_ = table_.shape.size();
  int64_t piece_bytes_;
};

}  // namespace

void take_rows(const LibraryCall& call, const Launch& launch) {
  const Take take(call, launch);
  WrongIndex wrong;
  const int64_t grain = std::max<int64_t>(16384 / std::max<int64_t>(take.row_elements(), 1), 1);
  split(take.count(), grain, launch.threads, [&](int64_t first, int64_t last) {
    int64_t index = 0;
    if (!take.run(first, last, index)) wrong.note(index);
  });
  wrong.report("take", call.operands[0].shape[0], launch);
}

}  // namespace nitinol::host
