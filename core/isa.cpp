#include "core/isa.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#if defined(__x86_64__)
#  include <cpuid.h>
#endif

namespace nitinol {

#if defined(__x86_64__)
namespace {

/// Not __builtin_cpu_supports, which some compilers (clang 14) refuse for this feature.
bool has_f16c() {
  uint32_t a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}

}  // namespace
#endif

Isa host_isa() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                        __builtin_cpu_supports("bmi2") && has_f16c();
  if (!has_avx2) return Isa::baseline;
  const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has_avx512 ? Isa::avx512 : Isa::avx2;
#else
  return Isa::baseline;
#endif
}

namespace {

Isa isa_from_environment() {
  const Isa host = host_isa();
  const char* const wish = std::getenv("NITINOL_ISA");
  if (wish == nullptr) return host;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (name_of(isa) == wish) return std::min(isa, host);
  }
  std::fprintf(stderr, "nitinol: NITINOL_ISA=%s ignored: expected baseline, avx2 or avx512\n",
               wish);
  return host;
}

}  // namespace

Isa current_isa() {
  static const Isa isa = isa_from_environment();
  return isa;
}

std::string_view name_of(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return "baseline";
    case Isa::avx2:
      return "avx2";
    case Isa::avx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace nitinol
