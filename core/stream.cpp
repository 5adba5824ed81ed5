#include "core/stream.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#if defined(__x86_64__)
#  include <immintrin.h>
#endif

namespace nitinol {

#if defined(__x86_64__)

// Whole lines only: the processor gathers the stores to a line and writes it once. SSE2 does about
// as well as wider instructions.
void stream(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t line = 64;
  auto* out = static_cast<std::byte*>(to);
  const auto* in = static_cast<const std::byte*>(from);
  const auto copy = [&](std::size_t count) {
    std::memcpy(out, in, count);
    out += count;
    in += count;
    bytes -= count;
  };
  if (const std::size_t beyond = reinterpret_cast<std::uintptr_t>(to) % line; beyond != 0)
    copy(std::min(line - beyond, bytes));
  for (; bytes >= line; out += line, in += line, bytes -= line) {
    for (std::size_t i = 0; i < line; i += sizeof(__m128i)) {
      const auto part = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
      _mm_stream_si128(reinterpret_cast<__m128i*>(out + i), part);
    }
  }
  copy(bytes);
}

void finish_streams() {
  _mm_sfence();
}

#else

void stream(void* to, const void* from, std::size_t bytes) {
  std::memcpy(to, from, bytes);
}

void finish_streams() {}

#endif

}  // namespace nitinol
