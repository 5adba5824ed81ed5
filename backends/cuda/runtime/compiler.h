// Compiler: machine code for GPUs, of kernels and kept in memory and on disk.
#pragma once

#include "backends/cuda/text/schedule.h"
#include "core/build_report.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nitinol {
class CodeStore;
}  // namespace nitinol

namespace nitinol::cuda {

/// An ELF file for one architecture, or PTX for GPUs that NVRTC does not know, as the driver loads
/// either.
using Cubin = std::vector<std::byte>;

/// Compiles a whole text for `architecture`, 90 for sm_90. Throws Error(compile) with what NVRTC
/// says and the lines it says it of, Error(device) without NVRTC. Any thread.
[[nodiscard]] Cubin compile_text(const std::string& text, int architecture);
/// The text as PTX, for a look at it.
[[nodiscard]] std::string ptx_of(const std::string& text, int architecture);

/// A kernel by a schedule, for an architecture.
struct Request {
  const Kernel* kernel = nullptr;
  Schedule schedule = {};
  int architecture = 0;
};

/// Code of a kernel: some of a cubin's functions.
struct Code {
  std::shared_ptr<const Cubin> cubin;
  int part = 0;  ///< its number in a program of several kernels, from 1 on; 0 if it is alone
  CodeOrigin origin = CodeOrigin::generated;  ///< of the process's first use
  friend bool operator==(const Code&, const Code&) = default;
};
/// The name of a kernel's function: entry0, entry1, ...; those of a part have its number before.
[[nodiscard]] std::string function_name(int part, std::size_t number);

/// The text that is compiled for a request.
[[nodiscard]] std::string text_of(const Request& request);
/// One program of several, each in a namespace of its own. NVRTC takes 16 ms for a program with
/// nothing in it.
[[nodiscard]] std::string text_of_all(std::span<const Request> requests);

/// Cubins that were asked for. One is compiled at most once; who asks meanwhile waits. Bounded by
/// bytes: those not used for longest go. Thread-safe.
class CubinCache {
 public:
  /// `store`: where cubins are kept beyond the process; may be null.
  explicit CubinCache(CodeStore* store, std::size_t most_bytes = std::size_t{64} << 20);
  ~CubinCache();
  CubinCache(const CubinCache&) = delete;
  CubinCache& operator=(const CubinCache&) = delete;

  /// With the user's store.
  [[nodiscard]] static CubinCache& instance();

  /// From memory, else from disk, else compiled.
  [[nodiscard]] Code get(const Request& request);
  /// Of a text that follows the prelude's words.
  [[nodiscard]] Code get_text(const std::string& text, int architecture);
  /// Of all; those for the first one's architecture together: what is to be compiled becomes a
  /// program for each thread of the pool, or several of up to six kernels, which are compiled side
  /// by side.
  [[nodiscard]] std::vector<Code> get_all(std::span<const Request> requests);

  struct Counts {
    uint64_t in_memory = 0, on_disk = 0, compiled = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  struct State;
  void make_all(std::span<const Request> requests);
  const std::unique_ptr<State> state_;
};

/// What a function of a cubin takes of a multiprocessor.
struct Resources {
  std::string function;
  int registers = 0;        ///< of a thread
  int64_t stack_bytes = 0;  ///< of a thread, in the device's memory: "local memory"
  int64_t code_bytes = 0;
  int64_t shared_bytes = 0;  ///< of a block of threads
};
/// Of all functions. Throws Error(compile) if that is no cubin.
[[nodiscard]] std::vector<Resources> resources_of(std::span<const std::byte> cubin);

}  // namespace nitinol::cuda
