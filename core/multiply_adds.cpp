#include "core/multiply_adds.h"

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

namespace nitinol {
namespace {

#if defined(__x86_64__)

// Without FMA a multiplication and an addition share the work of one.
float fma_sse(int64_t count) {
  __m128 s[12], x = _mm_set1_ps(1.0000001F), y = _mm_set1_ps(1e-9F);
  for (int k = 0; k < 12; ++k) s[k] = _mm_set1_ps(static_cast<float>(k));
  for (int64_t i = 0; i < count; ++i) {
#  pragma GCC unroll 12
    for (int k = 0; k < 12; ++k) s[k] = _mm_add_ps(_mm_mul_ps(s[k], x), y);
  }
  for (int k = 1; k < 12; ++k) s[0] = _mm_add_ps(s[0], s[k]);
  return _mm_cvtss_f32(s[0]);
}

[[gnu::target("avx2,fma")]] float fma_avx2(int64_t count) {
  __m256 s[12], x = _mm256_set1_ps(1.0000001F), y = _mm256_set1_ps(1e-9F);
  for (int k = 0; k < 12; ++k) s[k] = _mm256_set1_ps(static_cast<float>(k));
  for (int64_t i = 0; i < count; ++i) {
#  pragma GCC unroll 12
    for (int k = 0; k < 12; ++k) s[k] = _mm256_fmadd_ps(s[k], x, y);
  }
  for (int k = 1; k < 12; ++k) s[0] = _mm256_add_ps(s[0], s[k]);
  return _mm256_cvtss_f32(s[0]);
}

[[gnu::target("avx512f")]] float fma_avx512(int64_t count) {
  __m512 s[24], x = _mm512_set1_ps(1.0000001F), y = _mm512_set1_ps(1e-9F);
  for (int k = 0; k < 24; ++k) s[k] = _mm512_set1_ps(static_cast<float>(k));
  for (int64_t i = 0; i < count; ++i) {
#  pragma GCC unroll 24
    for (int k = 0; k < 24; ++k) s[k] = _mm512_fmadd_ps(s[k], x, y);
  }
  for (int k = 1; k < 24; ++k) s[0] = _mm512_add_ps(s[0], s[k]);
  return _mm512_cvtss_f32(s[0]);
}

}  // namespace

MultiplyAdds multiply_adds(Isa isa) {
  switch (isa) {
    case Isa::baseline:
      return {fma_sse, 2 * 12 * 4};
    case Isa::avx2:
      return {fma_avx2, 2 * 12 * 8};
    case Isa::avx512:
      break;
  }
  return {fma_avx512, 2 * 24 * 16};
}

#else

float fma_plain(int64_t count) {
  float s[32] = {};
  for (int64_t i = 0; i < count; ++i) {
    for (float& value : s) value = value * 1.0000001F + 1e-9F;
  }
  return s[0] + s[31];
}

}  // namespace

MultiplyAdds multiply_adds(Isa) {
  return {fma_plain, 2 * 32};
}

#endif

}  // namespace nitinol
