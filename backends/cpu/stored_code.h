// Machine code of kernels: from disk, else generated, and kept there.
#pragma once

#include "backends/cpu/code/stage_codes.h"
#include "backends/cpu/jit_plugin.h"
#include "core/isa.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace nitinol {
class CodeStore;
struct Kernel;
}  // namespace nitinol

namespace nitinol::cpu {

/// The store's key for it: what code depends on beside its kernel is part of that, but not what it
/// is tuned for, as it runs on every processor of the level.
[[nodiscard]] std::vector<std::byte> code_key(const Kernel& kernel, Isa isa);

/// Generates code for each of `levels` that `store` has none of, on whatever processor, and keeps
/// it there. Throws like code_of(). Thread-safe.
void keep_code(const Kernel& kernel, std::span<const Isa> levels, CodeStore& store);

/// The code of `kernel` for `isa`: what `store` (null: none) has, else what the code generator
/// makes with `effort`, which is kept there if that is full. Code on disk is of this very kernel,
/// level and code generator, and needs no generator; what is there but cannot be loaded is noted
/// and made anew. Nothing if there is no generator. Throws Error(unsupported) for a kernel that it
/// cannot express and Error(compile) if it fails. Thread-safe.
[[nodiscard]] std::optional<StageCodes> code_of(const Kernel& kernel, Isa isa, CodeStore* store,
                                                Effort effort);

}  // namespace nitinol::cpu
