// What tests of compiled functions share: calling until a Plan runs, and catching errors as text.
#pragma once

#include "backends/cpu/jit_loader.h"
#include "core/backend.h"
#include "nitinol.h"
#include "tests/on_threads.h"

#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

namespace nitinol::test {

/// 0.25 times the number of each element, less 3, in float32.
inline Tensor ramp(const Shape& shape) {
  return reshape(arange(0, element_count(shape), 1, f32) * 0.25 - 3.0, shape);
}
inline Tensor ramp(int64_t n) {
  return ramp(Shape{n});
}

/// Calls until the first Plan run: two recordings and one call of the Plan, whose result it
/// returns.
template <class F, class... A>
auto settle(const F& f, A&&... arguments) {
  f(arguments...);
  f(arguments...);
  return f(arguments...);
}

/// The kind and message of the Error that `body` throws, or that comes out where the tensor it
/// returns is read, or "no error". What is said beside eager's words if the call had returned is
/// left out.
template <class Body>
std::string error_of(const Body& body) {
  try {
    if constexpr (std::is_same_v<decltype(body()), Tensor>) {
      static_cast<void>(body().to(Device{}));
    } else {
      static_cast<void>(body());
    }
  } catch (const Error& error) {
    const std::string text = std::string(name_of(error.kind())) + ": " + error.message();
    return text.substr(0, text.find("\nFound when the call of "));
  }
  return "no error";
}

/// Kernels that went through the code generator so far in this process; 0 without one.
inline uint64_t compilations() {
  const cpu::JitPlugin* plugin = cpu::jit_plugin();
  return plugin == nullptr ? 0 : plugin->compilations();
}

/// `kernels` where there is a code generator, else 0: what a count of compilations() must be.
inline uint64_t if_generated(uint64_t kernels) {
  return cpu::jit_plugin() == nullptr ? 0 : kernels;
}

/// How a function runs that cannot be one Plan.
inline Tier without_plan() {
  return backend(default_device()).can_generate_code() ? Tier::deferred : Tier::eager;
}

}  // namespace nitinol::test
