// JitPlugin: how the cpu backend reaches the code generator, which lives in a module of its own.
//
// libLLVM costs ~12 ms and ~46 MB when loaded, so only `libnitinol_llvm.so` links it, and the
// backend dlopens that at the first kernel that needs code (cpu/jit_loader.cpp). The module is
// built with the library and never mixed with another version: plain C++ classes cross the
// boundary.
#pragma once

#include "backends/cpu/code/generated_object.h"
#include "core/isa.h"

#include <cstdint>
#include <string>

namespace nitinol {
struct Kernel;
}  // namespace nitinol

namespace nitinol::cpu {

/// What making code may cost: `least` takes less than half of the time, and the code runs 1.25 to
/// 1.7 times as long. Both give the same bits.
enum class Effort : uint8_t { least, full };

/// The code generator. One per process, never destroyed; thread-safe.
class JitPlugin {
 public:
  virtual ~JitPlugin() = default;
  /// Generates code for a level. Throws Error(compile) with the vendor's text if that fails, and
  /// Error(unsupported) for a kernel it cannot express, which the backend then interprets.
  virtual GeneratedObject generate(const Kernel& kernel, Isa isa, Effort effort) = 0;
  /// The intermediate code of `kernel` as text, and its assembly: for NITINOL_DUMP.
  virtual std::string intermediate_code(const Kernel& kernel) = 0;
  virtual std::string assembly(const Kernel& kernel) = 0;
  /// Kernels that code was generated for in this process.
  [[nodiscard]] virtual uint64_t compilations() const = 0;
};

/// Name of the one symbol that the module exports: a JitPluginEntry.
inline constexpr const char* jit_plugin_symbol = "nitinol_llvm_plugin";
/// Raised with every change of what crosses the boundary; the entry point returns null if it
/// differs.
inline constexpr int jit_plugin_version = 3;
using JitPluginEntry = JitPlugin* (*)(int version);

}  // namespace nitinol::cpu
