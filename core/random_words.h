// The words of random numbers (core/math/random.h) of many elements at once, for native loops.
//
// Philox multiplies words of 32 bits and wants all 64 of the product. Vectors have an instruction
// for just that, which g++ 12 does not find in a loop over elements, wherever it is written: with
// AVX2 an element took 5.4 ns, and takes 2.0 by hand; with AVX-512 3.0 and 1.3 (Zen 4, 2026).
#pragma once

#include "core/isa.h"

#include <array>
#include <cstdint>

namespace nitinol {

/// Elements whose words are made at a time.
inline constexpr int64_t random_block = 256;

/// Word k of element i in [k][i], its upper half of any content.
struct alignas(64) RandomWords {
  RandomWords() {}  // NOLINT(modernize-use-equals-default): that one would set zeros
  std::array<std::array<uint64_t, random_block>, 4> words;
};

/// The first words of n <= random_block elements: those that philox() gives for indices[i],
/// counters[i] and keys[i]. Some that follow them are overwritten, too.
using FillRandomWords = void (*)(const int64_t* indices, const int64_t* keys,
                                 const int64_t* counters, int64_t n, RandomWords& to);

/// The function for `count` words of each element: 1, 2 or 4.
template <int count>
[[nodiscard]] FillRandomWords fill_random_words(Isa isa);

}  // namespace nitinol
