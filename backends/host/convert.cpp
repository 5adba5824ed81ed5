#include "backends/host/convert.h"

#include "backends/host/elements.h"
#include "backends/host/per_isa.h"
#include "core/error.h"
#include "core/word.h"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__)
#  include <immintrin.h>
#endif

namespace nitinol::host {
namespace {

/// A fixed step lets the compiler vectorise.
template <class T, class Convert>
inline void gather_as(const char* from, int64_t step, auto* to, int64_t n, Convert convert) {
  const auto load = [&](int64_t at) {
    T value;
    std::memcpy(&value, from + at, sizeof(T));
    return convert(value);
  };
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  if (step == size) {
    for (int64_t i = 0; i < n; ++i) to[i] = load(i * size);
  } else if (step == 0) {
    const auto value = n > 0 ? load(0) : decltype(load(0)){};
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  } else if (step == -size) {
    for (int64_t i = 0; i < n; ++i) to[i] = load(-i * size);
  } else if (step == 2 * size) {
    for (int64_t i = 0; i < n; ++i) to[i] = load(2 * i * size);
  } else {
    for (int64_t i = 0; i < n; ++i) to[i] = load(i * step);
  }
}

template <class T, class Convert>
inline void scatter_as(const auto* from, char* to, int64_t step, int64_t n, Convert convert) {
  const auto store = [&](int64_t at, auto value) {
    const T element = convert(value);
    std::memcpy(to + at, &element, sizeof(T));
  };
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  if (step == size) {
    for (int64_t i = 0; i < n; ++i) store(i * size, from[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) store(i * step, from[i]);
  }
}

// Not lambdas, as below: g++ 12 makes nothing of a lambda's type that depends on a lambda's.
template <class T>
struct GatherSame {
  void operator()(auto, const char* from, int64_t step, void* to, int64_t n) const {
    gather_as<T>(from, step, static_cast<T*>(to), n, [](T x) { return x; });
  }
};
template <class T>
struct ScatterSame {
  void operator()(auto, const void* from, char* to, int64_t step, int64_t n) const {
    scatter_as<T>(static_cast<const T*>(from), to, step, n, [](T x) { return x; });
  }
};
// clang-format off
using GatherHalf = decltype([](auto, const char* from, int64_t step, void* to, int64_t n) {
  gather_as<uint16_t>(from, step, static_cast<float*>(to), n, [](uint16_t x) { return half_to_float(x); });
});
using ScatterHalf = decltype([](auto, const void* from, char* to, int64_t step, int64_t n) {
  scatter_as<uint16_t>(static_cast<const float*>(from), to, step, n, [](float x) { return float_to_half(x); });
});
using GatherBfloat = decltype([](auto, const char* from, int64_t step, void* to, int64_t n) {
  gather_as<uint16_t>(from, step, static_cast<float*>(to), n, [](uint16_t x) { return bfloat_to_float(x); });
});
using ScatterBfloat = decltype([](auto, const void* from, char* to, int64_t step, int64_t n) {
  scatter_as<uint16_t>(static_cast<const float*>(from), to, step, n, [](float x) { return float_to_bfloat(x); });
});
// clang-format on

#if defined(__x86_64__)

// By the processor's instructions, which g++ 12 does not find in the loops above: sixteen numbers
// at a time, in two vectors, which may overlap at the end. The instructions keep some of a NaN's
// bits, or quiet it, so a vector beside a NaN goes the way of the loops.

constexpr int64_t lanes = 8, packed = sizeof(uint16_t);

const __m128i* vector_at(const char* from, int64_t i) {
  return reinterpret_cast<const __m128i*>(from + i * packed);
}
__m128i* vector_at(char* to, int64_t i) {
  return reinterpret_cast<__m128i*>(to + i * packed);
}

[[gnu::target("avx2,f16c")]] inline void gather_halves_at(const char* from, float* to,
                                                          int64_t first, int64_t second) {
  const __m256 a = _mm256_cvtph_ps(_mm_loadu_si128(vector_at(from, first)));
  const __m256 b = _mm256_cvtph_ps(_mm_loadu_si128(vector_at(from, second)));
  _mm256_storeu_ps(to + first, a);
  _mm256_storeu_ps(to + second, b);
  if (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) == 0) [[likely]]
    return;
  for (const int64_t i : {first, second}) GatherHalf{}(0, from + i * packed, packed, to + i, lanes);
}

[[gnu::target("avx2,f16c")]] inline void scatter_halves_at(const float* from, char* to,
                                                           int64_t first, int64_t second) {
  const __m256 a = _mm256_loadu_ps(from + first), b = _mm256_loadu_ps(from + second);
  _mm_storeu_si128(vector_at(to, first), _mm256_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(vector_at(to, second), _mm256_cvtps_ph(b, _MM_FROUND_TO_NEAREST_INT));
  if (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) == 0) [[likely]]
    return;
  for (const int64_t i : {first, second})
    ScatterHalf{}(0, from + i, to + i * packed, packed, lanes);
}

[[gnu::target("avx2")]] inline void gather_bfloats_at(const char* from, float* to, int64_t first,
                                                      int64_t second) {
  const __m256i a = _mm256_cvtepu16_epi32(_mm_loadu_si128(vector_at(from, first)));
  const __m256i b = _mm256_cvtepu16_epi32(_mm_loadu_si128(vector_at(from, second)));
  _mm256_storeu_ps(to + first, _mm256_castsi256_ps(_mm256_slli_epi32(a, 16)));
  _mm256_storeu_ps(to + second, _mm256_castsi256_ps(_mm256_slli_epi32(b, 16)));
}

/// float_to_bfloat of eight, each in 32 bits; none a NaN.
[[gnu::target("avx2")]] inline __m256i rounded_bfloats(__m256 values) {
  const __m256i bits = _mm256_castps_si256(values);
  const __m256i last = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i half = _mm256_add_epi32(last, _mm256_set1_epi32(0x7fff));
  return _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
}

[[gnu::target("avx2")]] inline void scatter_bfloats_at(const float* from, char* to, int64_t first,
                                                       int64_t second) {
  const __m256 a = _mm256_loadu_ps(from + first), b = _mm256_loadu_ps(from + second);
  const __m256i both = _mm256_packus_epi32(rounded_bfloats(a), rounded_bfloats(b));
  const __m256i ordered = _mm256_permute4x64_epi64(both, 0xd8);
  _mm_storeu_si128(vector_at(to, first), _mm256_castsi256_si128(ordered));
  _mm_storeu_si128(vector_at(to, second), _mm256_extracti128_si256(ordered, 1));
  if (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q)) == 0) [[likely]]
    return;
  for (const int64_t i : {first, second})
    ScatterBfloat{}(0, from + i, to + i * packed, packed, lanes);
}

template <auto of_pair, class Others>
[[gnu::target("avx2,f16c")]] void gather_pairs(const char* from, int64_t step, void* to,
                                               int64_t n) {
  if (step != packed || n < lanes) return Others{}(0, from, step, to, n);
  auto* const out = static_cast<float*>(to);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) of_pair(from, out, i, i + lanes);
  if (i < n) of_pair(from, out, std::min(i, n - lanes), n - lanes);
}

template <auto of_pair, class Others>
[[gnu::target("avx2,f16c")]] void scatter_pairs(const void* from, char* to, int64_t step,
                                                int64_t n) {
  if (step != packed || n < lanes) return Others{}(0, from, to, step, n);
  const auto* const in = static_cast<const float*>(from);
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) of_pair(in, to, i, i + lanes);
  if (i < n) of_pair(in, to, std::min(i, n - lanes), n - lanes);
}

#endif

template <class F>
Gather gather() {
  return PerIsa<F, const char*, int64_t, void*, int64_t>::at(current_isa());
}
template <class F>
Scatter scatter() {
  return PerIsa<F, const void*, char*, int64_t, int64_t>::at(current_isa());
}

}  // namespace

Gather gather_of(DType dtype) {
#if defined(__x86_64__)
  if (dtype == f16 && current_isa() != Isa::baseline)
    return gather_pairs<gather_halves_at, GatherHalf>;
  if (dtype == bf16 && current_isa() == Isa::avx2)
    return gather_pairs<gather_bfloats_at, GatherBfloat>;
#endif
  if (dtype == f16) return gather<GatherHalf>();
  if (dtype == bf16) return gather<GatherBfloat>();
  return with_word(size_of(dtype),
                   [](auto word) -> Gather { return gather<GatherSame<decltype(word)>>(); });
}

Scatter scatter_of(DType dtype) {
#if defined(__x86_64__)
  if (dtype == f16 && current_isa() != Isa::baseline)
    return scatter_pairs<scatter_halves_at, ScatterHalf>;
  if (dtype == bf16 && current_isa() == Isa::avx2)
    return scatter_pairs<scatter_bfloats_at, ScatterBfloat>;
#endif
  if (dtype == f16) return scatter<ScatterHalf>();
  if (dtype == bf16) return scatter<ScatterBfloat>();
  return with_word(size_of(dtype),
                   [](auto word) -> Scatter { return scatter<ScatterSame<decltype(word)>>(); });
}

void throw_no_number() {
  throw Error(ErrorKind::unsupported, {.where = "arithmetic", .what = "bool is no number"});
}

}  // namespace nitinol::host
