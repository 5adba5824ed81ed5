// How fast this machine moves memory: the STREAM triad a = b + s * c, 12 bytes an element.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#  include <xmmintrin.h>
#endif

namespace blackscholes {

/// One thread's part of the triad. The stores go around the caches, as in the best code for large
/// arrays.
inline void triad(float* a, const float* b, const float* c, std::ptrdiff_t count) {
#if defined(__x86_64__)
  for (std::ptrdiff_t i = 0; i < count; i += 4) {
    _mm_stream_ps(a + i,
                  _mm_add_ps(_mm_load_ps(b + i), _mm_mul_ps(_mm_set1_ps(3), _mm_load_ps(c + i))));
  }
  _mm_sfence();
#else
  for (std::ptrdiff_t i = 0; i < count; ++i) a[i] = b[i] + 3 * c[i];
#endif
}

/// Bytes per second of the fastest of several passes over arrays that no cache holds.
inline double bandwidth(int threads) {
  constexpr std::ptrdiff_t count = 16 << 20;
  constexpr int passes = 12;
  struct alignas(64) Line {
    float values[16] = {};
  };
  std::vector<Line> memory(3 * count / 16);  // filled with zeros, so that all its pages exist
  float* const a = memory.data()->values;
  double best = 1e9;
  for (int pass = 0; pass < passes; ++pass) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::jthread> team;
    const std::ptrdiff_t part = count / threads / 16 * 16;
    for (int i = 0; i < threads; ++i) {
      float* const mine = a + i * part;
      team.emplace_back([mine, part] { triad(mine, mine + count, mine + 2 * count, part); });
    }
    team.clear();  // waits for all
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return 12.0 * static_cast<double>(count) / best;
}

}  // namespace blackscholes
