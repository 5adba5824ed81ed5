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

/// True if an operand of these strides walks through the loops from `first` on as if they were one.
template <class List>
[[nodiscard]] bool walks_as_one(const List& sizes, const List& strides, std::size_t first = 0) {
  for (std::size_t i = first; i + 1 < static_cast<std::size_t>(sizes.size()); ++i) {
    if (strides[i] != strides[i + 1] * sizes[i + 1]) return false;
  }
  return true;
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
    merge(0, count);
  }

  /// Merges what can be merged of loops [first, last).
  void merge(int first, int last) {
    for (int i = last - 2; i >= first; --i) {
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
    const bool is_row_loop = order != Order::none && order != Order::lanes;
    return is_row_loop && rank > 1 ? rank - 2 : rank - 1;
  }

  /// The loop over rows for Order::across, where a device asks for that from so many on (0: never):
  /// along it all operands that move along the last loop lie side by side. -1 if there is none, if
  /// all lie so along the last itself, or if that is no longer than for Order::turned.
  [[nodiscard]] int across(int64_t fewest) const {
    const int last = sizes.size() - 1;
    if (fewest == 0 || sizes[last] <= longest_turned_row) return -1;
    const auto is_across = [&](int i) {
      bool is_found = false;
      for (const Strides& s : strides) {
        if (s[last] == 0 || s[i] == 0) continue;
        if (s[i] != 1) return false;
        is_found |= s[last] != 1;
      }
      return is_found;
    };
    for (int i = 0; i < last; ++i) {
      if (sizes[i] >= fewest && is_across(i)) return i;
    }
    return -1;
  }

  /// Loop i, one before the last, becomes the one before the last.
  void move_before_last(int i) {
    const auto move = [i](Dims& list) {
      std::rotate(list.begin() + i, list.begin() + i + 1, list.end() - 1);
    };
    move(sizes);
    for (Strides& s : strides) move(s);
  }
};

}  // namespace nitinol
