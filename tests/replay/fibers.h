// Fibers: a block of GPU threads on one thread of the host, switched where they wait for each
// other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace nitinol::test {

/// Threads of a block, at most.
inline constexpr uint32_t most_threads = 1024;

/// What printed kernels see of it (shim.h).
struct Shim {
  uint32_t thread = 0, block = 0;
  uint64_t slots[most_threads][2];
  void (*wait)(Shim*, int line, bool of_warp);
  void (*fail)(Shim*, const char* what, int line);
};

/// In which order threads run between two synchronisations.
enum class ThreadOrder : uint8_t { forward, backward, random };

/// Of a launch.
struct Blocks {
  uint32_t count, threads;
};

/// Calls `thread` for each thread of each block, with shim.thread and shim.block set.
/// Returns what went wrong, or an empty text: a thread that misses a barrier which others wait at,
/// or what shim.fail was told.
[[nodiscard]] std::string run_blocks(Shim& shim, Blocks blocks, ThreadOrder order,
                                     const std::function<void()>& thread);

/// The same for functions that never wait, without fibers.
[[nodiscard]] std::string run_plain(Shim& shim, Blocks blocks, ThreadOrder order,
                                    const std::function<void()>& thread);

}  // namespace nitinol::test
