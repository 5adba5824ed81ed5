// PerIsa: one function compiled for each instruction set, as core/loop.h does for formulas.
#pragma once

#include "core/isa.h"

#include <array>
#include <cstddef>

namespace nitinol::host {

/// Bytes of a vector register, as a type.
template <int bytes>
struct VectorWidth {
  static constexpr int value = bytes;
};

/// F: a lambda without captures that is called with a VectorWidth and Args. Only its inner loops
/// should matter: calls that are not inlined stay baseline code.
template <class F, class... Args>
struct PerIsa {
  using Function = void (*)(Args...);

  /// The version for `isa`.
  static Function at([[maybe_unused]] Isa isa) {
#if defined(__x86_64__)
    constexpr std::array<Function, 3> versions = {baseline, avx2, avx512};
    return versions[static_cast<std::size_t>(isa)];
#else
    return baseline;
#endif
  }

 private:
  [[gnu::flatten]] static void baseline(Args... args) {
    F{}(VectorWidth<16>{}, args...);
  }
#if defined(__x86_64__)
  [[gnu::flatten, gnu::target("avx2,fma,f16c,bmi2")]] static void avx2(Args... args) {
    F{}(VectorWidth<32>{}, args...);
  }
  [[gnu::flatten, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi2,"
                              "prefer-vector-width=512")]] static void
  avx512(Args... args) {
    F{}(VectorWidth<64>{}, args...);
  }
#endif
};

}  // namespace nitinol::host
