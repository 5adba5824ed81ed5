#include "backends/host/vector_sort.h"

#include <cpuid.h>
#include <cstddef>
#include <cstdint>
#include <hwy/contrib/sort/vqsort.h>
#include <hwy/targets.h>

namespace nitinol::host {
namespace {

/// AMD's Zen 4: it writes what a mask chooses to memory (vpcompressd) a hundred times slower than
/// others, on which vqsort of AVX-512 rests; that of AVX2 does without.
bool is_zen4() {
  unsigned highest = 0, version = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0, &highest, &b, &c, &d) == 0 || b != signature_AMD_ebx) return false;
  if (__get_cpuid(1, &version, &b, &c, &d) == 0) return false;
  const unsigned family = (version >> 8 & 0xF) + (version >> 20 & 0xFF);
  return family == 0x19;  // Zen 3 has no AVX-512 anyway
}

/// What vqsort chooses from.
int64_t targets() {
  static const int64_t chosen = [] {
    if (is_zen4()) hwy::DisableTargets(HWY_AVX3 | HWY_AVX3_DL);
    return hwy::SupportedTargets();
  }();
  return chosen;
}

template <class Key>
void sort(Key* keys, int64_t count) {
  static_cast<void>(targets());
  hwy::Sorter()(keys, static_cast<std::size_t>(count), hwy::SortAscending());
}

}  // namespace

void vector_sort(uint16_t* keys, int64_t count) {
  sort(keys, count);
}

void vector_sort(uint32_t* keys, int64_t count) {
  sort(keys, count);
}

void vector_sort(uint64_t* keys, int64_t count) {
  sort(keys, count);
}

bool vectors_sort_wide_keys(int64_t count) {
  constexpr int64_t many = int64_t{1} << 17;
  return count >= many || (targets() & (HWY_AVX3 | HWY_AVX3_DL)) != 0;
}

}  // namespace nitinol::host
