#include "backends/cuda/runtime/segments.h"

#include "core/error.h"

#include <iterator>

namespace nitinol::cuda {

void Segments::add(void* segment, std::size_t bytes) {
  const Piece whole = {.bytes = bytes, .is_free = true, .is_unused = true, .begins = true};
  note_free(pieces_.emplace(static_cast<std::byte*>(segment), whole).first);
}

Segments::Cut Segments::cut(std::size_t bytes) {
  const auto found = free_.lower_bound({bytes, nullptr});
  if (found == free_.end()) return {};
  const auto piece = pieces_.find(found->second);
  free_.erase(found);
  Piece& block = piece->second;
  if (block.bytes > bytes) {
    Piece rest = block;
    rest.bytes -= bytes;
    rest.begins = false;
    note_free(pieces_.emplace_hint(std::next(piece), piece->first + bytes, rest));
  }
  block.bytes = bytes;
  block.is_free = false;
  return {piece->first, block.is_unused};
}

void Segments::give(void* block) {
  auto piece = pieces_.find(static_cast<std::byte*>(block));
  NITINOL_ASSERT(piece != pieces_.end() && !piece->second.is_free, "it was cut, and is given once");
  piece->second.is_free = true;
  piece->second.is_unused = false;
  if (can_join(piece)) {
    forget_free(std::next(piece));
    join(piece);
  }
  if (piece != pieces_.begin() && can_join(std::prev(piece))) {
    --piece;
    forget_free(piece);
    join(piece);
  }
  note_free(piece);
}

bool Segments::can_join(Pieces::iterator piece) const {
  const auto next = std::next(piece);
  return piece->second.is_free && next != pieces_.end() && next->second.is_free &&
         !next->second.begins;
}

void Segments::join(Pieces::iterator piece) {
  const auto next = std::next(piece);
  piece->second.bytes += next->second.bytes;
  piece->second.is_unused = piece->second.is_unused && next->second.is_unused;
  pieces_.erase(next);
}

void Segments::note_done() {
  for (auto& [at, piece] : pieces_) piece.is_unused = piece.is_free;
}

std::size_t Segments::release_whole(FunctionRef<bool(void* segment)> release) {
  std::size_t released = 0;
  for (auto piece = pieces_.begin(); piece != pieces_.end();) {
    const auto next = std::next(piece);
    const bool is_whole = piece->second.begins && (next == pieces_.end() || next->second.begins);
    if (is_whole && piece->second.is_free && release(piece->first)) {
      released += piece->second.bytes;
      forget_free(piece);
      pieces_.erase(piece);
    }
    piece = next;
  }
  return released;
}

}  // namespace nitinol::cuda
