// From a kernel to an object file in memory.
#pragma once

#include "backends/cpu/jit/target.h"
#include "backends/cpu/jit_plugin.h"

#include <string>

namespace nitinol::cpu {

/// Thread-safe; threads do not wait for each other. Throws Error(compile).
[[nodiscard]] GeneratedObject generate_object(const Kernel& kernel, const Target& target,
                                              Effort effort);
[[nodiscard]] std::string intermediate_code_of(const Kernel& kernel, const Target& target);
[[nodiscard]] std::string assembly_of(const Kernel& kernel, const Target& target);

}  // namespace nitinol::cpu
