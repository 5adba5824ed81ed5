// What each function of the fake driver does first.
#pragma once

#include "tests/cuda/fake/calls.h"
#include "tests/cuda/fake/state.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

namespace nitinol::test {

Driver& driver();
/// The device whose context is the thread's, or -1.
int& current_device();

/// Of this thread's, or one that another may not disturb either; or null.
inline Capture* disturbed_capture() {
  constexpr int global = 0;
  for (const auto& [handle, stream] : driver().streams) {
    Capture* const capture = stream->capture.get();
    if (capture == nullptr) continue;
    if (capture->thread == std::this_thread::get_id() || capture->mode == global) return capture;
  }
  return nullptr;
}

/// Waiting and memory have no place in a capture. (In the relaxed mode the driver lets some of them
/// pass. Nobody needs them.)
inline bool disturbs_captures(std::string_view name) {
  constexpr std::array names = {
      std::string_view("cuMemAlloc_v2"),      std::string_view("cuMemFree_v2"),
      std::string_view("cuMemHostAlloc"),     std::string_view("cuStreamSynchronize"),
      std::string_view("cuEventSynchronize"), std::string_view("cuEventQuery"),
      std::string_view("cuModuleLoadData"),   std::string_view("cuModuleUnload")};
  return std::ranges::find(names, name) != names.end();
}

inline int broken(Capture& capture, const char* why) {
  std::fprintf(stderr, "fake driver: a capture is broken by %s\n", why);
  capture.is_broken = true;
  return capture_unsupported;
}

/// Counts the call, and fails where a test has asked for it.
struct Entry {
  explicit Entry(const char* name, bool needs_context) {
    Driver& d = driver();
    if (d.is_child()) {  // another thread's lock may be held for ever in the child
      result = not_initialized;
      return;
    }
    lock = std::unique_lock(d.mutex);
    const int failure = Calls::instance().note(name);
    const int current = current_device();
    if (!d.is_initialized) result = not_initialized;
    if (result == success && needs_context) {
      result = current < 0 ? static_cast<int>(invalid_context)
                           : d.lost[static_cast<std::size_t>(current)];
    }
    if (failure == illegal_address && current >= 0)
      d.lost[static_cast<std::size_t>(current)] = failure;
    if (failure != success) result = failure;
    if (result != success || !disturbs_captures(name)) return;
    if (Capture* const capture = disturbed_capture()) result = broken(*capture, name);
  }
  std::unique_lock<std::recursive_mutex> lock;
  int result = success;
};

/// The object of a handle if it is the current device's, or null.
template <class T>
T* find(const std::map<const void*, std::unique_ptr<T>>& map, const void* handle) {
  const auto found = map.find(handle);
  return found == map.end() || found->second->device != current_device() ? nullptr
                                                                         : found->second.get();
}

}  // namespace nitinol::test

// NOLINTBEGIN(readability-identifier-naming)
#define FAKE_DRIVER_ENTRY(...)              \
  const Entry entry(__func__, __VA_ARGS__); \
  if (entry.result != success) return entry.result
#define FAKE_ENTRY_WITH_CONTEXT FAKE_DRIVER_ENTRY(true)
#define FAKE_ENTRY_WITHOUT_CONTEXT FAKE_DRIVER_ENTRY(false)
// NOLINTEND(readability-identifier-naming)
