// RowCopies: operands that do not walk the reduced loops as one (Kernel::reduced_loops), a block of
// rows at a time.
//
// Example: the sum of x[16, 64, 3136] over its first and last axes. Row c is 16 parts of 3136
// elements, 64 * 3136 apart. A block of 4096 of it is copied from two of them to memory that stays
// in the first-level cache, and visited there; what is stored so is copied back.
#pragma once

#include "backends/host/domain.h"
#include "backends/host/reduction_tile.h"
#include "backends/host/scratch.h"
#include "core/shape.h"

#include <cstddef>
#include <cstdint>

namespace nitinol {
struct Stage;
}  // namespace nitinol

namespace nitinol::host {

class RowCopies {
 public:
  /// With memory for `points` of each such operand.
  RowCopies(const Kernel& kernel, const Launch& launch, const Domain& domain, int64_t points,
            Scratch& scratch);

  /// Brings in what a stage reads of a piece, which begins with element number `start` of rows
  /// whose first elements are at `rows`; `pointers` and `steps` are then those of what is visited.
  [[nodiscard]] Piece load(const Stage& stage, const Piece& piece, int64_t start,
                           const Pointers& rows, Pointers& pointers, TileSteps& steps) const;
  /// Brings out what it has stored.
  void store(const Stage& stage, const Piece& piece, int64_t start, const Pointers& rows) const;

 private:
  struct Copied {
    std::size_t operand;
    int64_t size;  ///< of an element
    bool is_output;
    char* memory;
    const int64_t* strides;  ///< along the reduced loops, in elements
  };
  /// The piece's points from rows whose first elements are at `rows`, or to them.
  void copy(const Copied& copied, const Piece& piece, int64_t start, char* rows) const;

  std::size_t operands_;
  Copied* copied_;
  std::size_t count_ = 0;
  Dims sizes_;  ///< of the reduced loops
};

}  // namespace nitinol::host
