#include "backends/host/convert.h"

#include "backends/host/elements.h"
#include "backends/host/per_isa.h"
#include "core/error.h"
#include "core/word.h"

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

// By the processor's instructions, which g++ 12 does not find in the loops above. They keep some of
// a NaN's bits, or quiet it, so eight numbers with a NaN among them go the way of the others.

[[gnu::target("avx2,f16c")]] void gather_halves(const char* from, int64_t step, void* to,
                                                int64_t n) {
  if (step != sizeof(uint16_t)) return GatherHalf{}(0, from, step, to, n);
  auto* const out = static_cast<float*>(to);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const char* const here = from + i * step;
    const __m256 values = _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(here)));
    _mm256_storeu_ps(out + i, values);
    if (_mm256_movemask_ps(_mm256_cmp_ps(values, values, _CMP_UNORD_Q)) != 0)
      GatherHalf{}(0, here, step, out + i, 8);
  }
  GatherHalf{}(0, from + i * step, step, out + i, n - i);
}

[[gnu::target("avx2,f16c")]] void scatter_halves(const void* from, char* to, int64_t step,
                                                 int64_t n) {
  if (step != sizeof(uint16_t)) return ScatterHalf{}(0, from, to, step, n);
  const auto* const in = static_cast<const float*>(from);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    char* const here = to + i * step;
    const __m256 values = _mm256_loadu_ps(in + i);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(here),
                     _mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT));
    if (_mm256_movemask_ps(_mm256_cmp_ps(values, values, _CMP_UNORD_Q)) != 0)
      ScatterHalf{}(0, in + i, here, step, 8);
  }
  ScatterHalf{}(0, in + i, to + i * step, step, n - i);
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
  if (dtype == f16 && current_isa() != Isa::baseline) return gather_halves;
#endif
  if (dtype == f16) return gather<GatherHalf>();
  if (dtype == bf16) return gather<GatherBfloat>();
  return with_word(size_of(dtype),
                   [](auto word) -> Gather { return gather<GatherSame<decltype(word)>>(); });
}

Scatter scatter_of(DType dtype) {
#if defined(__x86_64__)
  if (dtype == f16 && current_isa() != Isa::baseline) return scatter_halves;
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
