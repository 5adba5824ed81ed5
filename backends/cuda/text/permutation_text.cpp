// Numbers are sorted by their buckets, which are the digits of a radix sort; then a block of
// threads takes a bucket, of which one thread puts the numbers in order: in shared memory, where a
// step of it takes some tens of clocks.
#include "backends/cuda/text/permutation_text.h"

#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/radix_text.h"
#include "backends/cuda/text/routine_text.h"
#include "core/math/random.h"
#include "core/permutation.h"

#include <fmt/format.h>

#include <string_view>

namespace nitinol::cuda {
namespace {

using permutation::block;
static_assert(block == 256 && math::philox_rounds == 10, "the texts below say so");

// Numbers: how many there are, the stride of the result and of the state; the bits of a bucket, the
// first counter of the chances of places.
constexpr std::string_view random_words = R"(
DEVICE u32 random_word(const Arguments& a, i64 counter, int which) {{
  const i64* const state = (const i64*)a.p0;
  const u64 key = (u64)state[0], at = (u64)state[a.n[2]] + (u64)counter;
  u32 c0 = (u32)at, c1 = (u32)(at >> 32), c2 = 0, c3 = 0, k0 = (u32)key, k1 = (u32)(key >> 32);
  UNROLL
  for (int round = 0; round < 10; ++round) {{
    const u64 p0 = (u64)c0 * {0:#x}ull, p1 = (u64)c2 * {1:#x}ull;
    c0 = (u32)(p1 >> 32) ^ c1 ^ k0;
    c1 = (u32)p1;
    c2 = (u32)(p0 >> 32) ^ c3 ^ k1;
    c3 = (u32)p0;
    k0 += {2:#x}u;
    k1 += {3:#x}u;
  }}
  return which == 0 ? c0 : which == 1 ? c1 : which == 2 ? c2 : c3;
}}
DEVICE i64& result_at(const Arguments& a, i64 place) {{ return ((i64*)a.p1)[place * a.n[1]]; }}
)";

constexpr std::string_view drawn_buckets = R"(
DEVICE Bits first_key(const Arguments& a, i64 i) {
  const u32 word = random_word(a, i / 2048 * 256 + i % 256, (int)(i / 512 % 4));
  return (Bits)((word >> (i / 256 % 2 * 16) & 0xffffu) >> (16 - a.n[3]));
}
DEVICE Place first_place(const Arguments& a, i64 i) { return (Place)i; }
DEVICE Keys given_of(const Arguments& a, i64 line) { Keys keys; keys.from = 0; keys.step = 0; return keys; }
DEVICE i64 result_of(const Arguments& a, i64 line) { return 0; }
DEVICE Bits order_of(const Arguments& a, Bits key) { return key; }
DEVICE Bits* sorted_keys(const Arguments& a) { return keys_of(a, DIGITS - 1); }
DEVICE void write_sorted(const Arguments& a, i64 result, i64 i, Bits key, Place place) {
  sorted_keys(a)[i] = key;
  result_at(a, i) = (i64)place;
}
// The first place of a bucket, which may be empty or the one behind the last.
DEVICE i64 bucket_begin(const Arguments& a, i64 bucket) {
  i64 first = 0, last = a.n[0];
  while (first < last) {
    const i64 middle = first + (last - first) / 2;
    if ((i64)sorted_keys(a)[middle] < bucket) first = middle + 1;
    else last = middle;
  }
  return first;
}
)";
constexpr std::string_view one_bucket = R"(
DEVICE i64 bucket_begin(const Arguments& a, i64 bucket) { return bucket * a.n[0]; }
)";

// places, chances: 2,048 words each. More numbers than that are put in order where they lie.
constexpr std::string_view shuffled_bucket = R"(
// With which place of the bucket that at `place` changes.
DEVICE u64 chosen_place(const Arguments& a, i64 begin, i64 place) {
  const u32 word = random_word(a, a.n[4] + place / 1024 * 256 + place % 256, (int)(place / 256 % 4));
  return (u64)word * (u64)(place - begin + 1) >> 32;
}
DEVICE void shuffle_bucket(const Arguments& a, Place* places, u32* chosen) {
  const u32 own = thread_index();
  const i64 begin = bucket_begin(a, block_index()), size = bucket_begin(a, (i64)block_index() + 1) - begin;
  if (size > 2048) {
    for (i64 i = 0; own == 0 && i < size; ++i) {
      i64& other = result_at(a, begin + (i64)chosen_place(a, begin, begin + i));
      const i64 moved = other;
      other = result_at(a, begin + i);
      result_at(a, begin + i) = moved;
    }
    return;
  }
  for (u32 i = own; i < (u32)size; i += 256) {
    places[i] = HAS_BUCKETS ? (Place)result_at(a, begin + i) : (Place)i;
    chosen[i] = (u32)chosen_place(a, begin, begin + i);
  }
  barrier();
  for (u32 i = 0; own == 0 && i < (u32)size; ++i) {
    const Place moved = places[chosen[i]];
    places[chosen[i]] = places[i];
    places[i] = moved;
  }
  barrier();
  for (u32 i = own; i < (u32)size; i += 256) result_at(a, begin + i) = (i64)places[i];
}
)";

}  // namespace

void write_permutation(const LibraryCall& call, RoutineText& made) {
  const OperandLayout& out = call.operands[1];
  const int64_t count = out.shape[0];
  const int bits = permutation::bucket_bits(count);
  made.arguments.numbers[0] = count;
  made.arguments.numbers[1] = out.strides[0];
  made.arguments.numbers[2] = call.operands[0].strides[0];
  made.arguments.numbers[3] = bits;
  made.arguments.numbers[4] = permutation::place_counter(count);
  const std::string word_text =
      fmt::format(fmt::runtime(random_words), math::philox_multipliers[0],
                  math::philox_multipliers[1], math::philox_weyl[0], math::philox_weyl[1]);
  made.text += fmt::format("#define HAS_BUCKETS {:d}\n", bits > 0);
  if (bits > 0) {
    const RadixSort sort = {.key_bytes = 2,
                            .place_bytes = count >> 32 == 0 ? 4 : 8,
                            .lines = 1,
                            .length = count,
                            .digits = bits > 8 ? 2 : 1,
                            .wanted = 0,
                            .places = RadixSort::Places::computed};
    open_radix_sort(sort, made);
    made.text += word_text;
    made.text += drawn_buckets;
    add_radix_sort(sort, made);
  } else {
    made.text += "typedef u32 Place;\n";
    made.text += word_text;
    made.text += one_bucket;
  }
  made.text += shuffled_bucket;
  made.add_step(
      "SHARED Place places[2048]; SHARED u32 chosen[2048]; shuffle_bucket(a, places, chosen)",
      block_threads << bits);
}

}  // namespace nitinol::cuda
