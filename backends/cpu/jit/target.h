// The instruction sets that code is generated for, and LLVM's description of each.
#pragma once

#include "core/isa.h"

namespace llvm {
class TargetMachine;
}

namespace nitinol::cpu {

/// What emission depends on. The same kernel for the same target is the same machine code up to
/// scheduling; its results never depend on the target.
struct Target {
  Isa isa = Isa::baseline;
  int vector_bytes = 16;
  bool has_masks = false;         ///< masked loads and stores of elements of 4 and 8 bytes
  bool has_narrow_masks = false;  ///< of 1 and 2 bytes too, and masks as plain integers
  bool has_gather = false;
  bool has_half = false;  ///< conversions between f32 and f16 (F16C): exact, as our own text
  bool has_fma = true;    ///< else fma is a call per lane
  bool has_round = true;  ///< else floor, ceil, trunc and round_even are written out
};

[[nodiscard]] Target target_for(Isa isa);

/// The calling thread's machine for `isa`, made at the first use: sharing one would need a lock.
/// Throws Error(compile) if LLVM was built without this processor.
[[nodiscard]] llvm::TargetMachine& target_machine(Isa isa);
/// Destroys the calling thread's machines.
void forget_target_machines();

}  // namespace nitinol::cpu
