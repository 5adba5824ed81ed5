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

struct FakeCounts {
  uint64_t launches = 0, waits = 0, uploaded = 0, downloaded = 0;
  uint64_t allocations = 0, modules = 0, queued = 0;  ///< that live
};

}  // namespace nitinol::test

extern "C" {
// NOLINTBEGIN(readability-identifier-naming)
/// Exported by the fake libcuda.so.1; tests find them by dlsym.
[[gnu::visibility("default")]] int fake_enqueue(void* stream, void (*work)(void*), void* data);
[[gnu::visibility("default")]] nitinol::test::FakeCounts fake_counts();
[[gnu::visibility("default")]] uint64_t fake_calls(const char* name);
/// Lets the call-th call of `name` from now on fail.
[[gnu::visibility("default")]] void fake_fail(const char* name, uint64_t call, int result);
// NOLINTEND(readability-identifier-naming)
}
