// Combiner: native code that joins the partial results of one kind of reduction.
#pragma once

#include "core/reduction.h"

#include <cstddef>
#include <cstdint>

namespace nitinol::host {

/// Code for one (Combine, accumulator type). Values are arrays of that type (pred: bytes 0 or 1);
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

/// Throws Error(internal) for a pair that means nothing, such as logical_or of f32.
[[nodiscard]] Combiner combiner_of(Combine combine, ScalarType type);

}  // namespace nitinol::host
