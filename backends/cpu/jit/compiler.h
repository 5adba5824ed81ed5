// From a kernel to machine code in memory.
#pragma once

#include "backends/cpu/jit/elf_loader.h"
#include "backends/cpu/jit/target.h"
#include "core/build_report.h"

#include <string>
#include <vector>

namespace nitinol {
struct Kernel;
}  // namespace nitinol

namespace nitinol::cpu {

/// Loaded code of a kernel: entries[s] is the function of stage s.
struct CompiledKernel {
  LoadedObject object;
  std::vector<const void*> entries;
  BuildReport report;
};

/// Thread-safe; threads do not wait for each other. Throws Error(compile).
[[nodiscard]] CompiledKernel compile_kernel(const Kernel& kernel, const Target& target);
[[nodiscard]] std::string intermediate_code_of(const Kernel& kernel, const Target& target);
[[nodiscard]] std::string assembly_of(const Kernel& kernel, const Target& target);

}  // namespace nitinol::cpu
