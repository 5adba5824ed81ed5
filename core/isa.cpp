#include "core/isa.h"

#include "core/environment.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
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
  constexpr Isa isas[] = {Isa::baseline, Isa::avx2, Isa::avx512};
  const std::array names = {name_of(isas[0]), name_of(isas[1]), name_of(isas[2])};
  const Isa host = host_isa();
  const std::optional<std::size_t> wish = environment_choice("NITINOL_ISA", names);
  return wish ? std::min(isas[*wish], host) : host;
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
