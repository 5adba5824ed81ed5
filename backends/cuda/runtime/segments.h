// Segments: memory that the driver has given, from which blocks are cut.
#pragma once

#include "core/function_ref.h"

#include <cstddef>
#include <map>
#include <set>
#include <utility>

namespace nitinol::cuda {

/// A block is cut from the smallest free piece in which it has room, the first of equal ones; what
/// is given back joins the free pieces beside it. So where a block lies follows from those that
/// live, and a step that finds the same ones gets the same addresses. Whoever uses it has a lock.
class Segments {
 public:
  struct Cut {
    void* block = nullptr;   ///< null: no piece is large enough
    bool is_unused = false;  ///< nothing that may still run uses its memory
  };

  void add(void* segment, std::size_t bytes);
  [[nodiscard]] Cut cut(std::size_t bytes);
  [[nodiscard]] bool has_room(std::size_t bytes) const {
    return !free_.empty() && free_.rbegin()->first >= bytes;
  }
  void give(void* block);
  /// All that has been asked for is done: what is free is unused.
  void note_done();
  /// Forgets those from which nothing is cut, if `release` takes them; the bytes of these.
  std::size_t release_whole(FunctionRef<bool(void* segment)> release);

 private:
  struct Piece {
    std::size_t bytes = 0;
    bool is_free = false, is_unused = false;
    bool begins = false;  ///< a segment: the piece before is another's
  };
  using Pieces = std::map<std::byte*, Piece>;

  /// Makes of a piece and the next one, both of which are free, one.
  void join(Pieces::iterator piece);
  [[nodiscard]] bool can_join(Pieces::iterator piece) const;
  void note_free(Pieces::iterator piece) { free_.emplace(piece->second.bytes, piece->first); }
  void forget_free(Pieces::iterator piece) { free_.erase({piece->second.bytes, piece->first}); }

  Pieces pieces_;  ///< of all segments
  std::set<std::pair<std::size_t, std::byte*>> free_;
};

}  // namespace nitinol::cuda
