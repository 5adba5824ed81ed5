// Backend: all that the library asks of a device.
#pragma once

#include "core/device.h"
#include "core/kernel.h"
#include "core/library.h"
#include "core/memory.h"
#include "core/storage.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>

#pragma GCC visibility push(default)

namespace nitinol {

/// One unit of device work: a generated kernel, or a call that the backend knows by name.
using Step = std::variant<Kernel, LibraryCall>;

/// Where in-kernel checks report. Nonzero means failed; the results must be discarded.
struct Status {
  enum Code : uint32_t {
    ok = 0,
    index_out_of_range = 1,
    division_by_zero = 2,
    number_out_of_range = 3
  };
  std::atomic<uint32_t> code = ok;
};

/// All that varies from launch to launch; everything else is in the Executable.
/// For a LibraryCall only buffers, scratch, status and threads are used.
struct Launch {
  std::span<void* const> buffers;  ///< per operand: its first element; null for scalar and position
  std::span<const int64_t> sizes;  ///< per loop dimension, outermost first, at most max_rank
  std::span<const int64_t> strides;  ///< [operand][dimension], in elements
  std::span<const int64_t>
      offsets;  ///< per operand: first value of a position; may be empty if there is none
  std::span<const uint64_t>
      scalars;  ///< per operand: bits of a scalar, in its dtype, in the low bytes
  Status* status = nullptr;
  int threads = 1;
};

/// What code generation cost, for explain().
struct BuildReport {
  double emit_s = 0;     ///< writing the intermediate code
  double codegen_s = 0;  ///< machine code
  double link_s = 0;
  std::size_t code_bytes = 0;
  bool is_generated = false;  ///< false: a prebuilt loop, an interpreter or a library call
};

/// A prepared step. Immutable, so one Executable may be launched from several threads.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Runs the step. Throws Error(internal) if the arguments are not of the classes it was prepared
  /// for.
  virtual void launch(const Launch& launch) const = 0;
  /// Runs the step once for each of these arguments, in any order or at the same time.
  virtual void launch_all(std::span<const Launch> launches) const {
    for (const Launch& arguments : launches) launch(arguments);
  }
  [[nodiscard]] virtual BuildReport report() const { return {}; }
  /// Bytes that it holds beside a copy of its step: code, or the objects of a library.
  [[nodiscard]] virtual std::size_t bytes() const { return 0; }
};

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

#pragma GCC visibility pop
