// Native loops over formulas, as what records of ops and kernels hold: pointers to functions.
// core/loop.h makes them.
#pragma once

#include <cstdint>
#include <span>

namespace nitinol {

struct Expr;               // core/scalar.h
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

/// A formula whose last argument is the same everywhere, as loops and as instructions.
struct LoopsAt {
  Loops loops;
  /// Appends the instructions for this value; null: it has none of its own. If it has, the loops do
  /// little and do not read the last argument.
  Expr (*emit)(std::span<const Expr> arguments) = nullptr;
};

}  // namespace nitinol
