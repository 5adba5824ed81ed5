// How the numbers 0 to n - 1 come into a random order, the same on every device: after C. R. Rao
// (1961) and M. Sandelius (1962), who let each number draw a bucket, and shuffle each bucket.
//
// A bucket has about 1,024 numbers, which a cache, or the shared memory of a GPU, holds, so that
// memory is written in the order of the buckets and not at random. In its bucket numbers ascend at
// first; then the one at each place, from the first on, changes places with one of those up to it
// (R. Fisher and F. Yates, 1938; R. Durstenfeld, 1964). Of m places, one is likelier than another
// by a share of m / 2^32 at most.
//
// Words are those of Philox for n counters (core/math/random.h), 256 counters at a time: vectors
// make them side by side.
#pragma once

#include <cstdint>

namespace nitinol::permutation {

inline constexpr int64_t block = 256;  ///< counters whose words lie together
inline constexpr int64_t bucket_numbers = 1024;
inline constexpr int most_bucket_bits = 16;

/// Bits of a bucket's number; 0 if there is one bucket.
[[nodiscard]] constexpr int bucket_bits(int64_t n) {
  int bits = 0;
  while (bits < most_bucket_bits && n >> bits > bucket_numbers) ++bits;
  return bits;
}

/// Where a chance lies among random words: 32 bits from `shift` on, or 16.
struct Chance {
  int64_t counter;
  int word, shift;
};

/// Of number i's bucket: the upper bits of 16.
[[nodiscard]] constexpr Chance bucket_chance(int64_t i) {
  return {i / (8 * block) * block + i % block, static_cast<int>(i / (2 * block) % 4),
          static_cast<int>(i / block % 2 * 16)};
}

/// The first counter of the chances of places.
[[nodiscard]] constexpr int64_t place_counter(int64_t n) {
  return bucket_bits(n) == 0 ? 0 : (n + 8 * block - 1) / (8 * block) * block;
}
/// Of the place that a number at place p of them all changes with, if its bucket begins `before`
/// places before it: 32 bits, of whose product with before + 1 the upper half is meant.
[[nodiscard]] constexpr Chance place_chance(int64_t n, int64_t p) {
  return {place_counter(n) + p / (4 * block) * block + p % block, static_cast<int>(p / block % 4),
          0};
}

}  // namespace nitinol::permutation
