// Rows: an operand as a list of rows, wherever they lie.
#pragma once

#include "backends/host/indices.h"
#include "core/library.h"
#include "core/shape.h"

#include <cstddef>
#include <cstdint>

namespace nitinol::host {

/// The parts of an operand at each position of its first `depth` axes.
class Rows {
 public:
  Rows(const OperandLayout& layout, void* memory, int depth)
      : start_(static_cast<char*>(memory)),
        bytes_(static_cast<int64_t>(size_of(layout.dtype))),
        lead_(axes(layout, 0, depth)),
        row_(axes(layout, depth, layout.shape.size())),
        elements_(element_count(row_.shape)),
        is_together_(is_contiguous(row_.shape, row_.strides)) {}

  /// Elements of a row.
  [[nodiscard]] int64_t elements() const { return elements_; }
  /// Whether a row lies in one piece.
  [[nodiscard]] bool is_together() const { return is_together_; }
  /// Bytes of an element.
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  [[nodiscard]] char* row(int64_t i) const {
    return start_ + (lead_.shape.size() == 1 ? i * lead_.strides[0] * bytes_
                                             : byte_offset(i, lead_.shape, lead_));
  }
  [[nodiscard]] char* at(int64_t i, int64_t element) const {
    return row(i) + (is_together_ ? element * bytes_ : byte_offset(element, row_.shape, row_));
  }

 private:
  static OperandLayout axes(const OperandLayout& layout, int first, int last) {
    OperandLayout part = {.dtype = layout.dtype, .shape = {}, .strides = {}};
    for (int axis = first; axis < last; ++axis) {
      part.shape.push_back(layout.shape[axis]);
      part.strides.push_back(layout.strides[axis]);
    }
    return part;
  }

  char* start_;
  int64_t bytes_;
  OperandLayout lead_, row_;
  int64_t elements_;
  bool is_together_;
};

}  // namespace nitinol::host
