// Rows: an operand as a list of rows, wherever they lie.
#pragma once

#include "backends/host/indices.h"
#include "core/library.h"
#include "core/shape.h"

#include <cstddef>
#include <cstdint>
#include <optional>

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
        is_together_(is_contiguous(row_.shape, row_.strides)),
        is_even_(are_evenly_spaced(lead_)),
        step_(lead_.shape.size() == 0 ? 0 : lead_.strides.back() * bytes_) {}

  /// Elements of a row.
  [[nodiscard]] int64_t elements() const { return elements_; }
  /// Whether a row lies in one piece.
  [[nodiscard]] bool is_together() const { return is_together_; }
  /// Bytes of an element.
  [[nodiscard]] int64_t bytes() const { return bytes_; }
  /// Bytes from one row to the next, if all lie so.
  [[nodiscard]] std::optional<int64_t> step() const {
    return is_even_ ? std::optional(step_) : std::nullopt;
  }
  [[nodiscard]] char* row(int64_t i) const {
    return start_ + (is_even_ ? i * step_ : byte_offset(i, lead_.shape, lead_));
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

  /// Whether each position lies as far from the one before as any other.
  static bool are_evenly_spaced(const OperandLayout& lead) {
    for (int axis = 1; axis < lead.shape.size(); ++axis) {
      if (lead.strides[axis - 1] != lead.strides[axis] * lead.shape[axis]) return false;
    }
    return true;
  }

  char* start_;
  int64_t bytes_;
  OperandLayout lead_, row_;
  int64_t elements_;
  bool is_together_;
  bool is_even_;
  int64_t step_;
};

}  // namespace nitinol::host
