// LoopNest: loops over operands that move by strides, and what may be done to them without changing
// what is visited.
#pragma once

#include "core/kernel.h"
#include "core/shape.h"

#include <algorithm>
#include <cstddef>

namespace nitinol {

/// How an operand that moves so many elements at each step moves.
inline StrideClass class_of(int64_t stride) {
  return stride == 0 ? StrideClass::zero : stride == 1 ? StrideClass::one : StrideClass::any;
}

/// Sizes of loops, outermost first, and per operand its strides along them, in elements. `List` is
/// a sequence of Strides.
template <class List>
struct LoopNest {
  Dims sizes;
  List strides;

  /// True if every operand walks through loop i and the next as if they were one.
  [[nodiscard]] bool can_merge(int i) const {
    return std::all_of(strides.begin(), strides.end(),
                       [&](const Strides& s) { return s[i] == s[i + 1] * sizes[i + 1]; });
  }

  void remove(int i) {
    sizes.erase(i);
    for (Strides& s : strides) s.erase(i);
  }

  /// Drops loops of one point among the first `count`, and merges what can be merged of those left.
  void simplify(int count) {
    for (int i = count - 1; i >= 0; --i) {
      if (sizes[i] != 1) continue;
      remove(i);
      --count;
    }
    for (int i = count - 2; i >= 0; --i) {
      if (!can_merge(i)) continue;
      sizes[i + 1] *= sizes[i];
      remove(i);
    }
  }

  /// One point is a contiguous vector of one.
  void add_point_if_empty() {
    if (!sizes.empty()) return;
    sizes.push_back(1);
    for (Strides& s : strides) s.push_back(1);
  }

  /// The loop whose points code takes a vector at a time (core/kernel.h).
  [[nodiscard]] int innermost(Order order) const {
    const int rank = sizes.size();
    const bool is_row_loop = order == Order::sequential || order == Order::turned;
    return is_row_loop && rank > 1 ? rank - 2 : rank - 1;
  }
};

}  // namespace nitinol
