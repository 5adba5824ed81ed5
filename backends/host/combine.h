// Combiner: native code that joins the partial results of one kind of reduction.
#pragma once

#include "core/reduction.h"

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace nitinol::host {

/// What an array of accumulators of T holds: conditions are bytes, 0 or 1, which join as they do.
template <class T>
using Held = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

/// Code for one reduction. Values are arrays of Held;
/// positions belong to arg_* alone and are null otherwise. Joining with the neutral element changes
/// nothing.
struct Combiner {
  std::size_t value_bytes = 0;
  bool has_positions = false;
  /// Sets n values to the neutral element: -0.0 for a floating sum.
  void (*fill)(void* values, int64_t* positions, int64_t n) = nullptr;
  /// into[j] = join(into[j], from[j]).
  void (*join)(void* into, int64_t* into_positions, const void* from, const int64_t* from_positions,
               int64_t n) = nullptr;
  /// Joins value l with value l + n/2, halving n (a power of two) until the result is values[0].
  void (*fold)(void* values, int64_t* positions, int64_t n) = nullptr;
  /// Joins value 2 i with value 2 i + 1, halving n (a power of two) until the result is values[0].
  /// Null for arg_*.
  void (*join_neighbours)(void* values, int64_t n) = nullptr;
  /// What a reduction of nothing gives: the neutral element, but +0.0 for sums.
  void (*fill_empty)(void* values, int64_t* positions, int64_t n) = nullptr;
};

/// Throws Error(internal) for a combine and a type that mean nothing together.
[[nodiscard]] Combiner combiner_of(const Reduction& reduction);

}  // namespace nitinol::host
