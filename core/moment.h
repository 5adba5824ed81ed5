// Moment: the state of all Variables at one time, for a call that reads them one by one.
//
// Another call may commit its assignments between two reads. What it replaces is kept as long as a
// moment before that is looked at: then both reads see what was there before.
#pragma once

#include "core/tensor.h"

#include <cstdint>
#include <span>

#pragma GCC visibility push(default)

namespace nitinol {

class Variable;
struct VariableCell;

/// A value as it was at a moment.
struct PastValue {
  Tensor value;
  uint64_t version = 0;      ///< of the cell, if the value is still the present one
  bool is_replaced = false;  ///< by a later one
};

class Moment {
 public:
  Moment();  ///< the present
  ~Moment();
  Moment(const Moment&) = delete;
  Moment& operator=(const Moment&) = delete;

  [[nodiscard]] PastValue value_of(const Variable& variable) const;
  /// This moment is the present from now on, if `is_same_now()` says that nothing which has been
  /// looked at has been replaced.
  template <class F>
  void move_on(const F& is_same_now) {
    const uint64_t now = begin();
    const bool moves = is_same_now();
    end(moves ? time_ : now);
    if (moves) time_ = now;
  }

 private:
  static uint64_t begin();
  static void end(uint64_t time);

  uint64_t time_;  ///< how many commits came before
};

/// To be called by who replaces the values of `cells` together, when all are locked and before one
/// is replaced or its buffer lent: keeps them for the moments that may be looked at.
void keep_past(std::span<VariableCell* const> cells);

}  // namespace nitinol

#pragma GCC visibility pop
