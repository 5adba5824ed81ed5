// Lines: how routines along one axis walk memory.
#pragma once

#include "backends/host/transpose.h"
#include "core/library.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace nitinol::host {

/// The lines of a call's operands along its axis, in blocks of neighbours along the innermost other
/// axis. All operands have the same sizes but along the axis.
///
/// A routine that goes along a block's lines at once reads and writes neighbours in memory, where
/// one after another would touch a cache line for each element. Where the axis is the innermost one
/// a line is contiguous itself, and a few at a time only have the processor add in parallel: more
/// would compete for the same places of the cache, unless they are short.
class Lines {
 public:
  static constexpr int64_t most = 32;            ///< lines in a block
  static constexpr int64_t most_contiguous = 4;  ///< where the axis is innermost
  static constexpr int64_t short_line = 128;     ///< but for lines of so many elements at most

  /// Element i of line c is at start + i * along + c * across, in elements.
  struct Walk {
    int64_t start, along, across;
    [[nodiscard]] int64_t at(int64_t i, int64_t c) const { return start + i * along + c * across; }
  };
  struct Block {
    int64_t lines;
    std::array<Walk, 3> walks;  ///< by operand
  };

  explicit Lines(const LibraryCall& call) : call_(call), shape_(call.operands[0].shape) {
    const int rank = shape_.size();
    const bool is_innermost = call.axis == rank - 1;
    inner_ = is_innermost ? rank - 2 : rank - 1;
    width_ = is_innermost && shape_[call.axis] > short_line ? most_contiguous : most;
    chunks_ = inner_ < 0 ? 1 : (shape_[inner_] + width_ - 1) / width_;
  }

  /// How many there are.
  [[nodiscard]] int64_t blocks() const {
    int64_t count = chunks_;
    for (int axis = 0; axis < shape_.size(); ++axis) {
      if (axis != inner_ && axis != call_.axis) count *= shape_[axis];
    }
    return count;
  }

  [[nodiscard]] Block block(int64_t number) const {
    const int64_t first = number % chunks_ * width_;
    Block out = {.lines = inner_ < 0 ? 1 : std::min(width_, shape_[inner_] - first), .walks = {}};
    for (std::size_t k = 0; k < call_.operands.size(); ++k) {
      const Strides& strides = call_.operands[k].strides;
      const int64_t across = inner_ < 0 ? 0 : strides[inner_];
      out.walks[k] = {.start = first * across, .along = strides[call_.axis], .across = across};
      int64_t rest = number / chunks_;
      for (int axis = shape_.size() - 1; axis >= 0; --axis) {
        if (axis == inner_ || axis == call_.axis) continue;
        out.walks[k].start += rest % shape_[axis] * strides[axis];
        rest /= shape_[axis];
      }
    }
    return out;
  }

  /// Blocks that are worth waking a thread, if an element of `layout` is a step of work.
  [[nodiscard]] int64_t grain(const OperandLayout& layout) const {
    return std::max<int64_t>(16384 / std::max<int64_t>(layout.shape[call_.axis] * width_, 1), 1);
  }

 private:
  const LibraryCall& call_;
  const Shape& shape_;
  int inner_;       ///< the innermost axis but the call's, or -1
  int64_t width_;   ///< lines in a block but the last along inner_
  int64_t chunks_;  ///< blocks along inner_
};

/// Contiguous lines (walk.along == 1) to where they lie side by side: element i of line c goes to
/// to[i * width + c].
template <class T>
void read_side_by_side(const T* x, const Lines::Walk& walk, int64_t lines, int64_t size, T* to,
                       int64_t width) {
  constexpr auto bytes = static_cast<int64_t>(sizeof(T));
  transpose({.from = reinterpret_cast<const char*>(x + walk.start),
             .from_step = walk.across * bytes,
             .to = reinterpret_cast<char*>(to),
             .to_step = width * bytes,
             .rows = size,
             .columns = lines},
            sizeof(T));
}

/// And back.
template <class T>
void write_side_by_side(const T* from, int64_t width, int64_t lines, int64_t size, T* out,
                        const Lines::Walk& walk) {
  constexpr auto bytes = static_cast<int64_t>(sizeof(T));
  transpose({.from = reinterpret_cast<const char*>(from),
             .from_step = width * bytes,
             .to = reinterpret_cast<char*>(out + walk.start),
             .to_step = walk.across * bytes,
             .rows = lines,
             .columns = size},
            sizeof(T));
}

}  // namespace nitinol::host
