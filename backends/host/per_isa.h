// PerIsa: one function compiled for each instruction set, as core/loop.h does for formulas.
#pragma once

#include "core/isa.h"

#include <array>

namespace nitinol::host {

/// F: a lambda without captures that is called with Args. Only its inner loops should matter: calls
/// that are not inlined stay baseline code.
template <class F, class... Args>
struct PerIsa {
  using Function = void (*)(Args...);

  /// The version for `isa`.
  static Function at(Isa isa) {
#if defined(__x86_64__)
    constexpr std::array<Function, 3> versions = {baseline, avx2, avx512};
    return versions[static_cast<std::size_t>(isa)];
#else
    return isa >= Isa::baseline ? baseline : nullptr;
#endif
  }

 private:
  [[gnu::flatten]] static void baseline(Args... args) {
    F{}(args...);
  }
#if defined(__x86_64__)
  [[gnu::flatten, gnu::target("avx2,fma,f16c,bmi2")]] static void avx2(Args... args) {
    F{}(args...);
  }
  [[gnu::flatten, gnu::target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c,bmi2,"
                              "prefer-vector-width=512")]] static void
  avx512(Args... args) {
    F{}(args...);
  }
#endif
};

}  // namespace nitinol::host
