// Streams: the arrays that a stage reads and writes, as vectors.
#pragma once

#include "backends/cpu/jit/instruction.h"
#include "backends/cpu/jit/lower.h"

#include <cstdint>
#include <span>

namespace llvm {
class AllocaInst;
}

namespace nitinol::cpu {

/// An input or output while its stage is being emitted. Values are null where they do not apply.
struct Stream {
  Access access = Access::unit;
  ScalarType type = ScalarType::f32;
  bool is_half = false;               ///< loaded and stored as f32, in memory f16; type is u16
  bool is_check = false;              ///< a byte that is set where a stored condition is false
  int lanes = 0;                      ///< Access::lanes: length of the array, a power of two
  bool is_counted = false;            ///< not memory: start + index * step
  llvm::Value* start = nullptr;       ///< address (counted: i64) at (0, 0)
  llvm::Value* outer_step = nullptr;  ///< bytes (counted: units) per outer step; null: none
  llvm::Value* inner_step = nullptr;  ///< the same per inner step
  llvm::Value* row = nullptr;         ///< address (counted: i64) at the current outer step
};

/// The points that a piece of code works on: `width` of them, or the first `count`.
struct Chunk {
  llvm::Value* index = nullptr;  ///< i64: of the first point on the inner loop
  llvm::Value* count = nullptr;  ///< i64: how many points there are; null: all
};

/// Emits loads and stores. Padding lanes of loaded chunks are zero.
class StreamEmitter {
 public:
  explicit StreamEmitter(const EmitContext& context) : context_(context) {}

  /// Address or number of `stream` at the current outer step, number `outer`.
  [[nodiscard]] llvm::Value* row_of(const Stream& stream, llvm::Value* outer);
  /// A vector of copies of what is at the row's start.
  [[nodiscard]] llvm::Value* load_uniform(const Stream& stream);
  [[nodiscard]] llvm::Value* load(const Stream& stream, const Chunk& chunk);
  /// The elements that lie `distances`, a vector of i64, from the points of the chunk.
  [[nodiscard]] llvm::Value* look_up(const Stream& stream, const Chunk& chunk,
                                     llvm::Value* distances);
  /// `row` moved by the first of `distances`.
  [[nodiscard]] llvm::Value* moved(const Stream& stream, llvm::Value* distances);
  void store(const Stream& stream, const Chunk& chunk, llvm::Value* value);
  /// As store() of a full chunk, around the caches; the address must be a multiple of
  /// vector_alignment().
  void store_non_temporal(const Stream& stream, const Chunk& chunk, llvm::Value* value);
  /// Makes `stream` one that conditions are stored to.
  void begin_check(Stream& stream);
  /// Writes `code` to the status of the StageCall `call` if one of them was false; nothing for
  /// other streams.
  void report_failure(const Stream& stream, uint16_t code, llvm::Value* call);
  /// After stores around the caches.
  void fence();
  /// How many points of the row come before the first of `outputs` is aligned; at most `size`.
  [[nodiscard]] llvm::Value* points_to_alignment(std::span<const Stream> outputs,
                                                 llvm::Value* size);
  /// Whether all of `outputs` are aligned at point `index`.
  [[nodiscard]] llvm::Value* aligned_after(std::span<const Stream> outputs, llvm::Value* index);
  /// Bytes of a vector of the stream, or of a register if that is less.
  [[nodiscard]] uint64_t vector_alignment(const Stream& stream) const;

 private:
  /// What is in memory as what the program computes with, and back.
  [[nodiscard]] llvm::Value* as_computed(const Stream& stream, llvm::Value* stored);
  [[nodiscard]] llvm::Value* as_stored(const Stream& stream, llvm::Value* computed);
  void note_failure(const Stream& stream, const Chunk& chunk, llvm::Value* holds);
  [[nodiscard]] llvm::Value* load_stored(const Stream& stream, const Chunk& chunk);
  [[nodiscard]] llvm::Value* address(const Stream& stream, llvm::Value* index);
  [[nodiscard]] llvm::Value* misalignment(const Stream& stream, llvm::Value* index);
  [[nodiscard]] llvm::Value* counted(const Stream& stream, llvm::Value* index);
  /// first, first + step, first + 2 step ...
  [[nodiscard]] llvm::Value* sequence(llvm::Value* first, llvm::Value* step);
  [[nodiscard]] llvm::Value* load_lanes(const Stream& stream, llvm::Value* index);
  void store_lanes(const Stream& stream, llvm::Value* index, llvm::Value* value);
  /// Copies `count` elements between the stream and the buffer, one by one.
  void copy_elements(const Stream& stream, const Chunk& chunk, bool to_buffer);
  [[nodiscard]] bool has_mask(const Stream& stream) const;
  [[nodiscard]] llvm::Value* mask(llvm::Value* count);
  [[nodiscard]] llvm::Value* step_of(const Stream& stream);
  llvm::Value* buffer();

  EmitContext context_;
  llvm::AllocaInst* buffer_ = nullptr;
};

}  // namespace nitinol::cpu
