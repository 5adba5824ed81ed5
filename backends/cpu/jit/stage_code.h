// The machine-independent code of one stage: a function with the interface of host::StageFunction.
#pragma once

#include "backends/cpu/jit/target.h"
#include "core/kernel.h"

#include <string>

namespace llvm {
class Module;
}

namespace nitinol::cpu {

/// Adds to `module` the function `name` that runs `stage` of `kernel`; `in_pieces`: a long program
/// may be split (pieces.h).
void emit_stage(llvm::Module& module, const Target& target, const Kernel& kernel,
                const Stage& stage, const std::string& name, bool in_pieces);

}  // namespace nitinol::cpu
