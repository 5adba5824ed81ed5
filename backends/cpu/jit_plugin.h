// JitPlugin: how the cpu backend reaches the code generator, which lives in a module of its own.
//
// libLLVM costs ~12 ms and ~46 MB when loaded, so only `libnitinol_llvm.so` links it, and the
// backend dlopens that at the first kernel that needs code (cpu/jit_loader.cpp). The module is
// built with the library and never mixed with another version: plain C++ classes cross the
// boundary.
#pragma once

#include "backends/host/stage.h"
#include "core/backend.h"
#include "core/isa.h"
#include "core/kernel.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace nitinol::cpu {

/// Machine code of one kernel: a StageCode for each of its stages. Destroying it frees the code.
class StageCodes {
 public:
  virtual ~StageCodes() = default;
  /// Entry s is the code of kernel.stages[s]; valid while this object lives. Any thread may call
  /// it.
  [[nodiscard]] const std::vector<host::StageCode>& stages() const { return stages_; }
  [[nodiscard]] const BuildReport& report() const { return report_; }

 protected:
  std::vector<host::StageCode> stages_;
  BuildReport report_;
};

/// The code generator. One per process, never destroyed; thread-safe.
class JitPlugin {
 public:
  virtual ~JitPlugin() = default;
  /// Generates code for current_isa(). Throws Error(compile) with the vendor's text if that fails,
  /// and Error(unsupported) for a kernel it cannot express, which the backend then interprets.
  virtual std::unique_ptr<StageCodes> compile(const Kernel& kernel) = 0;
  /// The same for a level that the caller knows this processor to have: for tests.
  virtual std::unique_ptr<StageCodes> compile_for(const Kernel& kernel, Isa isa) = 0;
  /// The intermediate code of `kernel` as text, and its assembly: for NITINOL_DUMP.
  virtual std::string intermediate_code(const Kernel& kernel) = 0;
  virtual std::string assembly(const Kernel& kernel) = 0;
  /// Kernels that were compiled in this process.
  [[nodiscard]] virtual uint64_t compilations() const = 0;
  /// Executable memory held by kernels that are alive.
  [[nodiscard]] virtual std::size_t code_bytes_in_use() const = 0;
};

/// Name of the one symbol that the module exports: a JitPluginEntry.
inline constexpr const char* jit_plugin_symbol = "nitinol_llvm_plugin";
/// Raised with every change of what crosses the boundary; the entry point returns null if it
/// differs.
inline constexpr int jit_plugin_version = 1;
using JitPluginEntry = JitPlugin* (*)(int version);

}  // namespace nitinol::cpu
