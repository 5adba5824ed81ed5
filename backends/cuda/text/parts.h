// Parts: how what blocks of a row came to is joined: pairwise, adjacent ones first, level by level.
//
// A last one without a partner is carried up, which is the same as being joined by what changes
// nothing. So trees may be filled up with neutral elements to a power of two.
#pragma once

#include "backends/cuda/text/body.h"
#include "core/function_ref.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nitinol::cuda {

/// How the block_threads threads of a block are placed: `columns` rows of the launch side by side,
/// each shared by block_threads / columns threads. In the text: `x`, the column, and `y`, the place
/// in it.
struct Teams {
  int columns;
  [[nodiscard]] int threads() const { return block_threads / columns; }
};
[[nodiscard]] Teams teams_of(const Schedule& schedule);

/// Words of eight bytes in the largest Joined<r>.
inline constexpr int joined_words = 2;

/// The functions `push<r>(stack, round, value)` and `total<r>(stack, rounds)`.
void write_stack(Body& body, std::size_t r);

/// Joins `value`, a variable of each thread, over the threads of a column, which all get the
/// result, by way of `shared`.
void write_tree(Body& body, std::size_t r, const std::string& value, Teams teams);

// ---- split: several blocks of threads share a row

/// Which rows, `tile`, and which part of them, `group`; rounds from `begin` to `end`.
void write_part(Body& body, const std::string& rounds);
/// The stages of a split kernel that are a launch each. Those that follow, of rows, are made by the
/// last block of threads of the launch, which knows what the rows come to.
[[nodiscard]] std::vector<std::size_t> launched_stages(const Kernel& kernel);
/// The functions of a split kernel, one for each of launched_stages(). `open(number)` begins one;
/// `write_elements` writes what a part of a row comes to, sum<r> of the stage.
void write_split_entries(Body& body, FunctionRef<void(std::size_t)> open,
                         FunctionRef<void(const Stage&)> write_elements);

}  // namespace nitinol::cuda
