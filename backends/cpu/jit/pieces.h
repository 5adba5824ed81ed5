// A long chain of instructions as pieces that processors overlap.
//
// A processor computes several vectors of a loop at once as long as their instructions fit into the
// window that its scheduler sees, about a hundred. A fused chain of ten tanh is longer: one vector
// waits for the latency of each of its instructions, three times as long as eager's ten loops do.
// So the inner loop runs over strips of a few vectors, and within a strip piece after piece of the
// program, each on all of the strip's vectors; what a later piece uses is kept in the cache between
// them (docs/decisions/0029-long-programs-run-in-pieces.md).
#pragma once

#include "core/scalar.h"

#include <cstdint>
#include <vector>

namespace nitinol::cpu {

/// What is to be split: instructions of the inner loop, and who uses them besides each other.
struct WholeProgram {
  const ScalarProgram& program;
  std::vector<bool> is_inner;  ///< per instruction: it is computed for each vector
  std::vector<bool> is_input;  ///< per instruction: it is loaded for each vector, as input imm
  std::vector<bool> is_accumulator;  ///< per input; they come last
  std::vector<uint32_t> results;     ///< stored by the last piece
};

/// What a piece has to do with the others.
struct Piece {
  std::vector<uint32_t> inputs;  ///< to load
  /// Instructions of earlier pieces whose values it takes from memory, and of its own whose values
  /// it puts there.
  std::vector<uint32_t> taken, kept;
};

struct Pieces {
  std::vector<Piece> pieces;       ///< one, or none: the program runs whole
  std::vector<uint16_t> piece_of;  ///< per instruction, of those of the inner loop
  std::vector<uint16_t> place_of;  ///< per instruction that is kept: which place in memory
  std::vector<uint8_t> places;     ///< bytes an element of each place
};

[[nodiscard]] Pieces split(const WholeProgram& whole);

/// Vectors of a strip.
inline constexpr int strip_vectors = 16;

}  // namespace nitinol::cpu
