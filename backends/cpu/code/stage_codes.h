// StageCodes: machine code of a kernel, ready to be called.
#pragma once

#include "backends/cpu/code/debugger.h"
#include "backends/cpu/code/elf_loader.h"
#include "backends/cpu/code/generated_object.h"
#include "backends/host/stage.h"

#include <cstddef>
#include <vector>

namespace nitinol {
struct Kernel;
}  // namespace nitinol

namespace nitinol::cpu {

/// A StageCode for each stage of a kernel; destroying it frees the code.
struct StageCodes {
  LoadedObject object;
  std::vector<host::StageCode> stages = {};  ///< any thread may call them while this lives
  BuildReport report;
  DebuggerEntry debugger = {};  ///< last: forgotten before the code is freed
};

/// Loads the code of `kernel` and tells perf and debuggers what it is. Throws
/// Error(compile) if the object is damaged or lacks a stage, Error(unsupported) if the system
/// grants no executable memory, std::bad_alloc if it has too little. Thread-safe.
[[nodiscard]] StageCodes load_stages(const GeneratedObject& object, const Kernel& kernel);

}  // namespace nitinol::cpu
