// What routines that look rows up by index share.
#pragma once

#include "core/launch.h"
#include "core/library.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace nitinol::host {

/// Sizes multiplied, from axis `first` to before axis `last`.
inline int64_t product(const Shape& shape, int first, int last) {
  int64_t count = 1;
  for (int i = first; i < last; ++i) count *= shape[i];
  return count;
}

/// Bytes from the start of `layout` to its element at position `i` of its leading axes, which have
/// the sizes `shape`.
inline int64_t byte_offset(int64_t i, const Shape& shape, const OperandLayout& layout) {
  if (shape.size() == 0) return 0;
  int64_t elements = 0;
  for (int axis = shape.size() - 1; axis > 0; --axis) {
    elements += i % shape[axis] * layout.strides[axis];
    i /= shape[axis];
  }
  elements += i * layout.strides[0];
  return elements * static_cast<int64_t>(size_of(layout.dtype));
}

/// The row of `rows` that `index` names, or -1 if there is none. Negative ones count from the end.
inline int64_t row_of(int64_t index, int64_t rows) {
  const int64_t row = index < 0 ? index + rows : index;
  return row < rows ? std::max<int64_t>(row, -1) : -1;
}

/// Indices of one axis.
struct IndexLine {
  const char* data;
  int64_t step;  ///< bytes from one to the next

  int64_t operator[](int64_t i) const {
    int64_t index = 0;
    std::memcpy(&index, data + i * step, sizeof index);
    return index;
  }
};

/// The rows that a tensor of int64 indices names.
class RowIndices {
 public:
  RowIndices(const OperandLayout& layout, const void* data, int64_t rows)
      : layout_(layout),
        line_{static_cast<const char*>(data),
              layout.shape.size() == 1 ? layout.strides[0] * int64_t{sizeof(int64_t)} : 0},
        rows_(rows),
        is_line_(layout.shape.size() == 1) {}

  [[nodiscard]] int64_t count() const { return element_count(layout_.shape); }
  [[nodiscard]] bool is_line() const { return is_line_; }
  /// The indices, if they have one axis.
  [[nodiscard]] IndexLine line() const { return line_; }
  /// Index number i as it was given.
  [[nodiscard]] int64_t given(int64_t i) const {
    return is_line_ ? line_[i] : IndexLine{line_.data, 1}[byte_offset(i, layout_.shape, layout_)];
  }
  /// Its row, or -1 if there is none.
  [[nodiscard]] int64_t row(int64_t i) const { return row_of(given(i), rows_); }

 private:
  const OperandLayout& layout_;
  IndexLine line_;
  int64_t rows_;
  bool is_line_;
};

/// Notes in the launch's status that `index` is none of `rows`, or throws Error(value) where nobody
/// reads a status.
void report_index(std::string_view where, int64_t index, int64_t rows, const Launch& launch);

/// An index that is out of range, which any thread may note.
class WrongIndex {
 public:
  void note(int64_t index) {
    index_ = index;
    was_noted_ = true;
  }
  /// As report_index, if there was one.
  void report(std::string_view where, int64_t rows, const Launch& launch) const {
    if (was_noted_) report_index(where, index_, rows, launch);
  }

 private:
  std::atomic<int64_t> index_ = 0;
  std::atomic<bool> was_noted_ = false;
};

}  // namespace nitinol::host
