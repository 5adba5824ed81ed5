// The fake driver, for tests of what tensors on a GPU ask of it (fake/README.md).
#pragma once

#include "core/error.h"
#include "core/function_ref.h"
#include "eager/ops/ops.h"
#include "tests/cuda/fake/fake.h"

#include <cstdio>
#include <dlfcn.h>
#include <optional>
#include <string>
#include <string_view>

namespace nitinol::test {

inline constexpr Device gpu = {.kind = Device::Kind::cuda, .index = 0};

/// The functions of the fake libraries' that the real ones do not have.
struct Fake {
  decltype(&fake_counts) counts = nullptr;
  decltype(&fake_fail) fail = nullptr;
};

/// A function that a library in this process exports, or null.
template <class Function>
Function exported(const char* library, const char* name) {
  void* const handle = ::dlopen(library, RTLD_NOW | RTLD_NOLOAD);
  return handle == nullptr ? nullptr : reinterpret_cast<Function>(::dlsym(handle, name));
}

/// Nothing, and a line that says so, if the driver is none or a real one.
inline std::optional<Fake> fake() {
  static_cast<void>(devices());  // opens it
  const Fake found = {exported<decltype(&fake_counts)>("libcuda.so.1", "fake_counts"),
                      exported<decltype(&fake_fail)>("libcuda.so.1", "fake_fail")};
  if (found.counts != nullptr) return found;
  std::puts("NOT RUN: the driver is not the fake one");
  return std::nullopt;
}

/// Whether there is a GPU, a real one or that of the fake driver, and a line that says so if not.
inline bool has_gpu() {
  for (const DeviceInfo& info : devices()) {
    if (info.device == gpu && info.missing.empty()) return true;
  }
  std::puts("NOT RUN: there is no GPU");
  return false;
}

inline Tensor numbers(Device device) {
  return reshape(arange(12, f32, device) * 0.25 - 1, {3, 4});
}

inline std::string error_of(FunctionRef<void()> body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace nitinol::test
