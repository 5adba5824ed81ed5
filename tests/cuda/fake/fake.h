// The fake driver: what its parts and the tests know of each other.
#pragma once

#include <cstddef>
#include <cstdint>

namespace nitinol::test {

/// A "cubin" of the fake NVRTC's: this, then the text.
struct FakeImage {
  uint64_t magic;
  uint64_t bytes;
};
inline constexpr uint64_t fake_magic = 0x4e69542063756461;

/// Of all devices.
struct FakeCounts {
  uint64_t launches = 0, waits = 0, uploaded = 0, downloaded = 0;
  uint64_t peers_by_host = 0;  ///< bytes between devices that cannot read each other's memory
  uint64_t queued = 0;         ///< asked for and not yet done
  uint64_t queued_beside = 0;  ///< of them, by streams of copies alone
  /// That live.
  uint64_t blocks = 0, pinned = 0, streams = 0, events = 0, modules = 0, graphs = 0;
  uint64_t graph_launches = 0;
};

}  // namespace nitinol::test

extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
/// Exported by each library; tests find them by dlsym. (calls.h)
/// "name count" in lines, of all functions that were called.
[[gnu::visibility("default")]] const char* fake_calls();
/// Lets the call-th call of `name` from now on fail; call 0: none any more. So does
/// NITINOL_FAKE_FAIL "name:call:result".
[[gnu::visibility("default")]] void fake_fail(const char* name, uint64_t call, int result);
/// Exported by the fake libcuda.so.1.
[[gnu::visibility("default")]] int fake_enqueue(void* stream, void (*work)(void*), void* data);
/// The same for work that a graph may do again and again; `end` ends `data`.
[[gnu::visibility("default")]] int fake_enqueue_again(void* stream, void (*work)(void*), void* data,
                                                      void (*end)(void*));
/// The same for work that is done once `work` returns true, until which it is tried again.
[[gnu::visibility("default")]] int fake_enqueue_tried(void* stream, bool (*work)(void*),
                                                      void* data);
/// Does what was asked of a device's stream, and returns when that is done.
[[gnu::visibility("default")]] int fake_run(int device, void* stream);
/// The current device, or -1.
[[gnu::visibility("default")]] int fake_device();
/// Whether the range lies in one block of the current device's.
[[gnu::visibility("default")]] bool fake_holds(const void* address, std::size_t bytes);
[[gnu::visibility("default")]] nitinol::test::FakeCounts fake_counts();
/// Exported by the fake libnvrtc.so and libcublasLt.so: objects that live.
[[gnu::visibility("default")]] uint64_t fake_live();
// NOLINTEND(readability-identifier-naming)
}
