// BlockStack: the tree in which the results of a row's blocks join, without keeping all of them.
#pragma once

#include "backends/host/combine.h"
#include "backends/host/scratch.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace nitinol::host {

/// Blocks of a row in a call, at most; a power of two.
inline constexpr int64_t most_blocks_at_once = 64;

/// How the results of several blocks lie that one call of a stage has set.
enum class BlockOrder : uint8_t {
  counted,   ///< of one row: block after block
  reversed,  ///< of block b those of all rows, at the place of b's bits in reverse: neighbours in
             ///< the tree lie half of them apart
};

/// Results of blocks, waiting to be joined: per reduction some arrays of `slots` values. Each new
/// result joins the top while the top stands for as many blocks as it does.
class BlockStack {
 public:
  /// For up to so many blocks.
  BlockStack(std::span<const Combiner> combiners, int64_t slots, int64_t blocks, Scratch& scratch)
      : combiners_(combiners.data()),
        slots_(slots),
        values_(scratch.take<char*>(combiners.size())),
        positions_(scratch.take<int64_t*>(combiners.size())) {
    const auto depth = static_cast<std::size_t>(std::bit_width(static_cast<uint64_t>(blocks)) + 1);
    const std::size_t values = depth * static_cast<std::size_t>(slots);
    for (std::size_t r = 0; r < combiners.size(); ++r) {
      values_[r] = scratch.take<char>(values * combiners[r].value_bytes);
      positions_[r] = combiners[r].has_positions ? scratch.take<int64_t>(values) : nullptr;
    }
  }

  void clear() { depth_ = 0; }
  /// Where the next result of reduction r goes, before push().
  [[nodiscard]] char* values(std::size_t r) const { return values_at(r, depth_); }
  [[nodiscard]] int64_t* positions(std::size_t r) const { return positions_at(r, depth_); }

  /// Joins the results that were written for each of these reductions, one of each of `rows` rows
  /// and `blocks` blocks, to one of each row.
  void join_blocks(std::span<const uint16_t> reductions, int64_t rows, int64_t blocks,
                   BlockOrder order) const;

  /// Takes in the results that were written, one of each row, which stand for that many blocks: as
  /// many precede, or a multiple.
  void push(std::span<const uint16_t> reductions, int64_t rows, int64_t blocks) {
    int level = std::countr_zero(static_cast<uint64_t>(blocks));
    while (depth_ > 0 && levels_[static_cast<std::size_t>(depth_ - 1)] == level) {
      join(reductions, rows, depth_ - 1);
      --depth_;
      ++level;
    }
    levels_[static_cast<std::size_t>(depth_++)] = level;
  }

  /// Joins what is left; the results are then in values(r).
  void finish(std::span<const uint16_t> reductions, int64_t rows) {
    for (; depth_ > 1; --depth_) join(reductions, rows, depth_ - 2);
    depth_ = 0;
  }

 private:
  /// A reduced dimension of 2^62 elements has at most this many levels.
  static constexpr int most_levels = 64;

  [[nodiscard]] char* values_at(std::size_t r, int depth) const {
    return values_[r] + static_cast<std::size_t>(depth * slots_) * combiners_[r].value_bytes;
  }
  [[nodiscard]] int64_t* positions_at(std::size_t r, int depth) const {
    return positions_[r] == nullptr ? nullptr : positions_[r] + depth * slots_;
  }
  /// Joins entry into + 1 into the one before it.
  void join(std::span<const uint16_t> reductions, int64_t rows, int into) {
    for (const uint16_t r : reductions) {
      combiners_[r].join(values_at(r, into), positions_at(r, into), values_at(r, into + 1),
                         positions_at(r, into + 1), rows);
    }
  }

  const Combiner* combiners_;
  int64_t slots_;
  char** values_;
  int64_t** positions_;
  int depth_ = 0;
  std::array<int, most_levels> levels_;
};

}  // namespace nitinol::host
