// Sorting integers by vectors: Highway's vqsort, of the fastest instructions that the CPU has.
#pragma once

#include <cstdint>

namespace nitinol::host {

/// Sorts `count` keys, the smallest first.
void vector_sort(uint16_t* keys, int64_t count);
void vector_sort(uint32_t* keys, int64_t count);
void vector_sort(uint64_t* keys, int64_t count);

/// Whether so many keys of 64 bits are sorted so before a radix sort does it: with AVX-512, but for
/// Zen 4's, and where they do not fit into a cache near the core.
[[nodiscard]] bool vectors_sort_wide_keys(int64_t count);

}  // namespace nitinol::host
