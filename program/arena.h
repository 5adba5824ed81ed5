// Arena: where the temporaries of a call lie in one block of memory.
#pragma once

#include <cstddef>
#include <vector>

namespace nitinol::program {

/// Places for blocks of bytes: each gets the lowest free one that is large enough.
class Arena {
 public:
  /// The offset of a new block. One of no bytes lies at 0, whatever else does.
  [[nodiscard]] std::size_t place(std::size_t bytes);
  /// Frees a block that place() has placed.
  void free(std::size_t offset, std::size_t bytes);
  /// The end of the highest block that there has been.
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  struct Gap {
    std::size_t offset = 0, bytes = 0;
  };
  /// Some neighbouring gaps, by offset.
  struct Shelf {
    std::vector<Gap> gaps;    ///< at least one
    std::size_t largest = 0;  ///< of them
  };
  using Shelves = std::vector<Shelf>;

  [[nodiscard]] Shelves::iterator shelf_at(std::size_t offset);
  void insert(const Gap& gap);
  void remove(Shelves::iterator shelf, std::vector<Gap>::iterator gap);
  [[nodiscard]] Gap take_from(std::size_t offset);
  [[nodiscard]] Gap take_up_to(std::size_t offset);

  Shelves shelves_;      ///< by offset; no two gaps touch
  std::size_t top_ = 0;  ///< from here on all is free
  std::size_t bytes_ = 0;
};

}  // namespace nitinol::program
