// memory_snapshot(): which operation, in which line, made the memory that lives.
//
//     MemoryNotes notes;
//     train(model, data);
//     fmt::print("{}", to_string(memory_snapshot()));
#pragma once

#include "core/device.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// While one lives, blocks of memory are noted: by which operation, from which line, when. It costs
/// one or two microseconds an operation, and some 100 bytes a block that lives. What was made
/// before is not known. NITINOL_MEMORY=1 is one for the whole process.
class MemoryNotes {
 public:
  MemoryNotes();
  ~MemoryNotes();
  MemoryNotes(const MemoryNotes&) = delete;
  MemoryNotes& operator=(const MemoryNotes&) = delete;
};

/// A block that lives.
struct MemoryBlock {
  std::string made_by;              ///< "matmul"; of compiled code "mul, add", or "temporaries"
  std::vector<std::string> places;  ///< the user's lines: "model.cpp:42"
  std::size_t bytes = 0;
  Device device;
  double age_s = 0;
  bool is_held = false;  ///< by a Variable, as its value or its gradient; else by a tensor
};

/// All blocks that one operation has made in one line.
struct MemoryLine {
  std::string made_by;
  std::vector<std::string> places;
  std::size_t bytes = 0, blocks = 0;  ///< that live
  std::size_t held = 0;               ///< bytes of Variables among them
  std::size_t at_peak = 0;            ///< bytes that lived when most memory did
  uint64_t made = 0;                  ///< blocks, since noting began
};

/// The most that lived from this time, since noting began, to that of the next point.
struct MemoryPoint {
  double time_s = 0;
  std::size_t bytes = 0;
  struct Share {
    std::size_t line = 0;  ///< of MemorySnapshot::lines
    std::size_t bytes = 0;
  };
  std::vector<Share> shares;  ///< of the lines that had most, some twenty
};

/// Memory of all devices, as data.
struct MemorySnapshot {
  std::vector<MemoryBlock> blocks;  ///< the largest first
  std::vector<MemoryLine> lines;    ///< of most bytes first, then by those at the peak
  std::vector<MemoryPoint> points;  ///< at most 4096: times between them double as needed
  std::size_t bytes = 0;            ///< of all blocks
  std::size_t others = 0;           ///< in use and not noted: made before, or by no operation
  std::size_t peak = 0;             ///< the most that lived
  double peak_s = 0, length_s = 0;  ///< when that was, and how long was noted

  /// The same as JSON.
  [[nodiscard]] std::string to_json() const;
  /// A page that needs nothing else: memory over time by the user's lines, and a bar for each
  /// operation and line.
  [[nodiscard]] std::string to_html() const;
  /// Writes to_html() to a file whose name ends in .html, else to_json(). Throws Error(io) if that
  /// cannot be written.
  void save(const std::string& path) const;
};

/// What lives now. Throws Error(value) unless memory is noted. Any thread.
[[nodiscard]] MemorySnapshot memory_snapshot();

/// A table of operations and lines, at most so many.
[[nodiscard]] std::string to_string(const MemorySnapshot& snapshot, std::size_t rows = 20);

}  // namespace nitinol

#pragma GCC visibility pop
