// Call: what a launch of a printed kernel passes to the device.
#pragma once

#include "backends/cuda/runtime/libraries.h"
#include "backends/cuda/text/schedule.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nitinol::cuda {

/// Memory that a launch needs beside its operands.
struct Workspace {
  std::size_t bytes = 0;     ///< of any content, aligned to 16: scratch operands, parts of results
  std::size_t counters = 0;  ///< u32 words that are 0 before and after every launch
};

/// The workspace of a launch that is not empty.
[[nodiscard]] Workspace workspace_of(const Kernel& kernel, const Schedule& schedule,
                                     const Launch& launch);

/// Addresses on the device that are not operands.
struct Places {
  void* workspace = nullptr;
  uint32_t* counters = nullptr;
  uint32_t* status = nullptr;      ///< written where a check does not hold
  const uint32_t* gate = nullptr;  ///< if not null and not 0 there, the launch does nothing
};

/// Whether a launch has nothing to do. The reduction of no element has: there is a result.
[[nodiscard]] bool is_empty(const Kernel& kernel, const Launch& launch);

struct Call {
  std::vector<std::byte> arguments;  ///< the struct `Arguments` of the text
  /// Per entry: blocks of `threads` threads. They run one after another, with the same
  /// arguments.
  std::vector<uint32_t> blocks;
  uint32_t threads = block_threads;
};

/// Launches a function by blocks of `threads` threads; what the driver says of it.
[[nodiscard]] int enqueue(Driver::Function function, uint32_t blocks, uint32_t threads,
                          std::span<const std::byte> arguments, Driver::Stream stream);

/// Throws Error(unsupported) if the launch is too large for the device: more than 2^31 blocks.
[[nodiscard]] Call call_of(const Kernel& kernel, const Schedule& schedule, const Launch& launch,
                           const Places& places);
/// Of launches that are made as one, at most schedule.parts. None is empty.
[[nodiscard]] Call call_of_all(const Kernel& kernel, const Schedule& schedule,
                               std::span<const Launch* const> launches,
                               std::span<const Places> places);

}  // namespace nitinol::cuda
