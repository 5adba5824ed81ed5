// Lanes: how threads of a warp accumulate and fold a run of a row (core/reduction.h).
//
// A chunk of a row is 64 elements, or as many as the threads take at once if that is a whole row.
// In it, thread t takes `width` neighbours from t * width on, and again `threads` * `width`
// elements further: so element i of a block joins lane i % 64 (or 32), and each lane belongs to one
// thread.
#pragma once

#include "backends/cuda/text/body.h"

#include <string>
#include <vector>

namespace nitinol::cuda {

inline constexpr int full_chunk = 64;

/// Elements of a chunk, and how many pieces of `width` a thread takes of it.
[[nodiscard]] int chunk_of(const Schedule& schedule);
[[nodiscard]] int pieces_of(const Schedule& schedule);
/// Accumulators of a thread.
[[nodiscard]] int sums_of(const Schedule& schedule, const Reduction& reduction);

/// The operands whose elements are kept in registers; declares keep<k>.
[[nodiscard]] std::vector<bool> write_kept(Body& body);

/// Visits the run of a row from `first` to `last`, indices in scope, and `lane`, the thread among
/// those that share it. Declares sum<r> of the stage. `is_loaded[k]`: keep<k> holds the elements.
void write_run(Body& body, const Stage& stage, const std::vector<bool>& is_kept,
               std::vector<bool>& is_loaded, const std::string& condition);

/// Folds sum<r>: all threads that share the run have the result in sum<r>[0].
void write_fold(Body& body, std::size_t r);

}  // namespace nitinol::cuda
