// Finding the code generator.
#pragma once

#include "backends/cpu/jit_plugin.h"

namespace nitinol::cpu {

/// The code generator, loaded at the first call; null if this build has none or it cannot be
/// loaded, which is logged once. Thread-safe.
[[nodiscard]] JitPlugin* jit_plugin();

/// Whether jit_plugin() gives one, as far as can be told without opening it: code from disk needs
/// none. Thread-safe.
[[nodiscard]] bool has_jit_plugin();

}  // namespace nitinol::cpu
