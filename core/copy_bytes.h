// Copies of rows.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace nitinol {

/// memcpy. From some 2 KB on C libraries take one instruction for it (rep movsb), which AMD's Zen 3
/// needs 13 times as long for if the result lies less than a cache line ahead of what is read, in
/// their pages: the roll of rows of 4 KB. Such copies are made in pieces.
inline void copy_bytes(void* to, const void* from, std::size_t bytes) {
  constexpr std::size_t page = 4096, cache_line = 64, piece = 1024;
  const auto ahead = (reinterpret_cast<uintptr_t>(to) - reinterpret_cast<uintptr_t>(from)) % page;
  if (bytes <= piece || ahead == 0 || ahead >= cache_line) {
    std::memcpy(to, from, bytes);
    return;
  }
  auto* out = static_cast<char*>(to);
  const auto* in = static_cast<const char*>(from);
  for (std::size_t size = 0; bytes > 0; out += size, in += size, bytes -= size) {
    size = std::min(bytes, piece);
    asm volatile("" : "+r"(size));  // of a size that it knows a compiler makes the same instruction
    std::memcpy(out, in, size);
  }
}

}  // namespace nitinol
