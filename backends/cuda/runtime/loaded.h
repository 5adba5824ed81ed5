// Loaded: a cubin on a device.
#pragma once

#include "backends/cuda/runtime/call.h"
#include "backends/cuda/runtime/compiler.h"
#include "backends/cuda/runtime/gpu.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nitinol::cuda {

/// Whether NITINOL_CUDA_WAIT is 1.
[[nodiscard]] bool waits_after_each();

/// The functions of a kernel, or of a text. Waits for its launches when it goes.
class Loaded {
 public:
  /// `label` is for errors, `name` what tools show.
  Loaded(Gpu& gpu, const Code& code, std::string label, std::string name);
  Loaded(const Loaded&) = delete;
  Loaded& operator=(const Loaded&) = delete;
  ~Loaded();

  /// Memory for what a launch needs beside its operands. It may be let go when run() has returned.
  struct Memory {
    StorageHandle workspace;  ///< null if it is the device's
    Places places;
  };
  [[nodiscard]] Memory memory_for(const Workspace& workspace, const Launch& launch) const;
  /// All functions, one after another, and nobody else's between them.
  void run(const Call& call) const;
  /// A launch of a function by blocks of block_threads threads.
  struct Step {
    uint32_t entry, blocks;
    int64_t number;
  };
  /// The same with these steps, each of which finds its number in the arguments at `number_at`.
  void run(std::span<const Step> steps, std::span<std::byte> arguments,
           std::size_t number_at) const;
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  /// "compiled, 32 registers", or where else the code came from: after the first time from memory.
  [[nodiscard]] std::string describe() const;

 private:
  Driver::Function entry(std::size_t number) const;
  void check_size(std::size_t argument_bytes) const;
  void launch(std::size_t entry, uint32_t blocks, uint32_t threads,
              std::span<const std::byte> arguments) const;

  Gpu& gpu_;
  Driver::Module module_ = nullptr;
  const std::size_t bytes_;
  const int part_;
  const CodeOrigin origin_;
  int registers_ = 0;  ///< most of any function; 0 if the code does not say
  mutable std::atomic<bool> is_told_ = false;
  const std::shared_ptr<const std::string> label_;
  const std::string name_;
  mutable ForkSafeMutex mutex_;
  mutable std::vector<Driver::Function> entries_;
};

}  // namespace nitinol::cuda
