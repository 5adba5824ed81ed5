// The instruction sets that native loops are built for, and which one this process uses.
#pragma once

#include <cstdint>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// Instruction set levels, each containing the ones before it.
enum class Isa : uint8_t {
  baseline,  ///< x86-64 with SSE2; the only level on other processors
  avx2,      ///< AVX2, FMA, F16C, BMI2
  avx512,    ///< avx2 and AVX-512 F, BW, DQ, VL
};

/// The highest level that this processor and operating system support.
[[nodiscard]] Isa host_isa();

/// The level this process uses: host_isa(), lowered by the environment variable NITINOL_ISA
/// (baseline, avx2 or avx512; read once). It never raises the level; an unknown value is ignored
/// with a note on stderr.
[[nodiscard]] Isa current_isa();

/// "baseline", "avx2" or "avx512".
[[nodiscard]] std::string_view name_of(Isa isa);

}  // namespace nitinol

#pragma GCC visibility pop
