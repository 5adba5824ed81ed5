// Native loops over formulas, as what records of ops and kernels hold: pointers to functions.
// core/loop.h makes them.
#pragma once

#include <cstdint>

namespace nitinol {

enum class Isa : uint8_t;  // core/isa.h

/// out[i] = formula(in[0][i], ...) for 0 <= i < n. All arrays are contiguous; out may equal an
/// input of the same element size exactly, and must not overlap one otherwise.
using Loop = void (*)(const void* const* in, void* out, int64_t n);

/// One loop, compiled for each instruction set; all give the same bits.
struct Loops {
  Loop baseline, avx2, avx512;

  // Whoever calls these includes core/pick_loop.h.
  [[nodiscard]] Loop at(Isa isa) const;
  /// The loop for current_isa().
  [[nodiscard]] Loop pick() const;
};

/// Loops of a formula whose last argument is the same everywhere.
struct LoopsAt {
  Loops loops;
  bool is_short;  ///< they do not read it, and do little
};

}  // namespace nitinol
