// Fibers: a block of GPU threads on one thread of the host, switched where they wait for each
// other.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

namespace nitinol::test {

/// What printed kernels see of it (shim.h).
struct Shim {
  uint32_t thread = 0, block = 0;
  uint64_t slots[256][2];
  void (*wait)(Shim*, int line, bool of_warp);
  void (*fail)(Shim*, const char* what, int line);
};

/// In which order threads run between two synchronisations.
enum class ThreadOrder : uint8_t { forward, backward, random };

/// Calls `thread` for each thread of each of `blocks` blocks, with shim.thread and shim.block set.
/// Returns what went wrong, or an empty text: a thread that misses a barrier which others wait at,
/// or what shim.fail was told.
[[nodiscard]] std::string run_blocks(Shim& shim, uint32_t blocks, ThreadOrder order,
                                     const std::function<void()>& thread);

/// The same for functions that never wait, without fibers.
[[nodiscard]] std::string run_plain(Shim& shim, uint32_t blocks, ThreadOrder order,
                                    const std::function<void()>& thread);

}  // namespace nitinol::test
