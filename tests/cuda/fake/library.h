// What fake libraries above the driver share: elements, objects that are counted, the fake driver.
#pragma once

#include "tests/cuda/fake/calls.h"
#include "tests/cuda/fake/fake.h"

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <dlfcn.h>

namespace nitinol::test {

// Numbers of types, of all these libraries'; what is none of these is bf16.
inline constexpr int type_f32 = 0, type_f64 = 1, type_f16 = 2;

inline double value_of(const void* from, int type, int64_t at) {
  switch (type) {
    case type_f32:
      return static_cast<const float*>(from)[at];
    case type_f64:
      return static_cast<const double*>(from)[at];
    case type_f16:
      return static_cast<double>(static_cast<const _Float16*>(from)[at]);
    default:
      return std::bit_cast<float>(static_cast<uint32_t>(static_cast<const uint16_t*>(from)[at])
                                  << 16);
  }
}

inline void store(void* to, int type, int64_t at, double value) {
  const auto single = static_cast<float>(value);
  switch (type) {
    case type_f32:
      static_cast<float*>(to)[at] = single;
      return;
    case type_f64:
      static_cast<double*>(to)[at] = value;
      return;
    case type_f16:
      static_cast<_Float16*>(to)[at] = static_cast<_Float16>(single);
      return;
    default: {
      const auto bits = std::bit_cast<uint32_t>(single);
      const uint32_t rest = bits & 0xffff, kept = bits >> 16;
      static_cast<uint16_t*>(to)[at] = static_cast<uint16_t>(
          single != single ? 0x7fff : kept + (rest > 0x8000 || (rest == 0x8000 && (kept & 1))));
    }
  }
}

inline std::size_t bytes_of(int type) {
  return type == type_f64 ? 8 : type == type_f32 ? 4 : 2;
}

/// Objects of this library that live.
inline std::atomic<uint64_t>& live_objects() {
  static std::atomic<uint64_t> live = 0;
  return live;
}

/// Of which a library's objects are.
struct Counted {
  Counted() { ++live_objects(); }
  Counted(const Counted&) { ++live_objects(); }
  Counted& operator=(const Counted&) = default;
  ~Counted() { --live_objects(); }
};

/// The fake driver's functions; null if it is not open.
struct FakeDriver {
  decltype(&fake_enqueue) enqueue = nullptr;
  decltype(&fake_enqueue_again) enqueue_again = nullptr;
  decltype(&fake_holds) holds = nullptr;
  decltype(&fake_enqueue_tried) enqueue_tried = nullptr;
  decltype(&fake_run) run = nullptr;
  decltype(&fake_device) device = nullptr;
};

inline const FakeDriver& fake_driver() {
  static const FakeDriver found = [] {
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return FakeDriver{};
    const auto find = [library]<class F>(F*& function, const char* name) {
      function = reinterpret_cast<F*>(::dlsym(library, name));
    };
    FakeDriver driver;
    find(driver.enqueue, "fake_enqueue");
    find(driver.enqueue_again, "fake_enqueue_again");
    find(driver.holds, "fake_holds");
    find(driver.enqueue_tried, "fake_enqueue_tried");
    find(driver.run, "fake_run");
    find(driver.device, "fake_device");
    return driver;
  }();
  return found;
}

}  // namespace nitinol::test

/// Counts a call of the function that this stands in, which may be to fail.
// NOLINTBEGIN(readability-identifier-naming)
#define FAKE_ENTRY                                                                       \
  if (const int failure = nitinol::test::Calls::instance().note(__func__); failure != 0) \
  return failure
// NOLINTEND(readability-identifier-naming)
