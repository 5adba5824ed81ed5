// Backend: all that the library asks of a device.
#pragma once

#include "core/device.h"
#include "core/executable.h"
#include "core/memory.h"
#include "core/storage.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>

namespace nitinol {

struct Kernel;
struct LibraryCall;
/// One unit of device work: a generated kernel, or a call that the backend knows by name. Who makes
/// one includes both, core/kernel.h and core/library.h.
using Step = std::variant<Kernel, LibraryCall>;

/// All that the library asks of a device; a new device implements this and nothing else.
class Backend {
 public:
  virtual ~Backend() = default;
  /// At least `bytes` of 64-byte aligned memory. Throws Error(value) when the budget or the machine
  /// is exhausted.
  virtual StorageHandle allocate(std::size_t bytes) = 0;
  virtual void copy(const void* from, void* to, std::size_t bytes) = 0;
  /// Generates code or creates a vendor handle. Slow: callers keep the result (core/executables.h).
  /// Throws Error(unsupported) if the device cannot run the step, Error(compile) if codegen fails.
  virtual std::unique_ptr<Executable> prepare(const Step& step) = 0;
  /// Waits for all launches and rethrows the first failure among them.
  virtual void synchronize() = 0;
  virtual MemoryStatistics memory() = 0;
  /// Most bytes that may be in use and cached; 0 lifts the limit.
  virtual void set_memory_budget(std::size_t bytes) = 0;
  /// Gives cached blocks back to the system.
  virtual void release_cached_memory() = 0;
  /// Lets the peak of memory() begin anew at what is in use.
  virtual void reset_peak_memory() = 0;
  /// False if prepare() on a fused Kernel interprets instead of generating code.
  [[nodiscard]] virtual bool can_generate_code() = 0;
};

/// The backend of a device. Throws Error(device) if there is none. (backends/backends.cpp)
[[nodiscard]] Backend& backend(Device device);

}  // namespace nitinol
