// A block of threads takes a tile of keys, 16 or 8 of each thread: item i of a tile is one of 32
// neighbours that a warp looks at together, so that a key's rank is what its warps have counted
// before, plus how many lanes before its own have the same digit. The ranked keys are exchanged in
// shared memory, and leave it in runs of one digit. Lines that fit in a tile are sorted without
// leaving shared memory, several in a tile if they are short. Counts alone are added by atomics: no
// order shows in a result. The scheme is that of D. Merrill and A. Grimshaw, "High performance and
// scalable radix sorting" (2011), with ranks by matching lanes.
#include "backends/cuda/text/radix_text.h"

#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/routine_text.h"
#include "core/round_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string_view>

namespace nitinol::cuda {
namespace {

static_assert(block_threads == 256, "the texts below say so");

/// Numbers of the arguments.
enum Number {
  lines_at = 88,
  length_at,
  tiles_at,
  places_at,
  counts_at,
  lanes_at,
  group_at,
  digits_at,
  choices_at,
  histograms_at,
  given_at
};

// sums: 256 words. The 16 steps of a block's scan are those of its warps, and a sum of 8 totals.
constexpr std::string_view counts_text = R"(
DEVICE Place* counts_of(const Arguments& a) { return (Place*)(a.workspace + a.n[92]); }
DEVICE Place* totals_of(const Arguments& a) { return counts_of(a) + a.n[88] * a.n[95] * a.n[90]; }
// The sum of what the threads before this one have.
DEVICE Place sum_before(Place value, Place* sums) {
  const u32 own = thread_index(), lane = own % 32;
  sums[own] = value;
  warp_barrier();
  UNROLL
  for (u32 step = 1; step < 32; step *= 2) {
    const Place other = lane >= step ? sums[own - step] : 0;
    warp_barrier();
    sums[own] += other;
    warp_barrier();
  }
  barrier();
  Place before = sums[own] - value;
  for (u32 warp = 0; warp < own / 32; ++warp) before += sums[warp * 32 + 31];
  barrier();
  return before;
}
// n[93] threads share the tiles of a digit, eight neighbours each at a time.
DEVICE void sum_counts(const Arguments& a, Place* sums) {
  const u32 lanes = (u32)a.n[93], own = thread_index(), lane = own & (lanes - 1);
  const i64 tiles = a.n[90], digit = (i64)(block_index() * (256 / lanes) + own / lanes);
  Place* const counts = counts_of(a) + digit * tiles;
  Place before = 0;
  for (i64 first = 0; first < tiles; first += 8 * lanes) {
    const i64 at = first + 8 * lane;
    Place here[8], sum = 0;
    UNROLL
    for (int i = 0; i < 8; ++i) {
      here[i] = at + i < tiles ? counts[at + i] : 0;
      sum += here[i];
    }
    sums[own] = sum;
    barrier();
    for (u32 step = 1; step < lanes; step *= 2) {
      const Place other = lane >= step ? sums[own - step] : 0;
      barrier();
      sums[own] += other;
      barrier();
    }
    sum = before + sums[own] - sum;
    UNROLL
    for (int i = 0; i < 8; ++i) {
      if (at + i < tiles) counts[at + i] = sum;
      sum += here[i];
    }
    before += sums[own - lane + lanes - 1];
    barrier();
  }
  if (lane == 0) totals_of(a)[digit] = before;
}
)";

constexpr std::string_view halves = R"(
DEVICE Bits* keys_of(const Arguments& a, i64 half) { return (Bits*)a.workspace + half * a.n[88] * a.n[89]; }
DEVICE Place* places_of(const Arguments& a, i64 half) { return (Place*)(a.workspace + a.n[91]) + half * a.n[88] * a.n[89]; }
struct Keys { const Bits* from; i64 step; };
)";

constexpr std::string_view radix_words = R"(
DEVICE u32 digit_of(const Arguments& a, Bits key, i64 number) { return (u32)(order_of(a, key) >> (8 * number)) & 255u; }
DEVICE Keys first_keys(const Arguments& a, i64 line) {
  if (!IS_CHOSEN) return given_of(a, line);
  Keys keys;
  keys.from = keys_of(a, 0) + line * a.n[89];
  keys.step = 1;
  return keys;
}
struct Tile { i64 line, begin; u32 count; };
DEVICE Tile tile_of(const Arguments& a, i64 length) {
  Tile tile;
  tile.line = block_index() / (u32)a.n[90];
  tile.begin = (i64)(block_index() % (u32)a.n[90]) * TILE;
  tile.count = (u32)least<i64>(TILE, length - tile.begin);
  return tile;
}
template <int keys> DEVICE u32 item_of(int j) {
  return thread_index() / 32 * (32 * keys) + (u32)j * 32 + thread_index() % 32;
}
// Where keys come in their tile if it is sorted by a digit: ranks; and where the digit of this thread begins. What
// is no key has the last digit, and comes after all keys. counts: [8][256].
template <int keys> DEVICE u32 rank_digits(const u32* digits, u32* ranks, u32* counts, Place* sums) {
  const u32 own = thread_index(), before_own = (1u << own % 32) - 1;
  u32* const warp = counts + own / 32 * 256;
  UNROLL
  for (int w = 0; w < 8; ++w) counts[w * 256 + own] = 0;
  barrier();
  UNROLL
  for (int j = 0; j < keys; ++j) {
    const u32 same = same_lanes(digits[j]), before = warp[digits[j]];
    warp_barrier();
    if ((same & before_own) == 0) warp[digits[j]] = before + bits_in(same);
    warp_barrier();
    ranks[j] = before + bits_in(same & before_own);
  }
  barrier();
  u32 sum = 0;
  UNROLL
  for (int w = 0; w < 8; ++w) sum += counts[w * 256 + own];
  const u32 first = (u32)sum_before(sum, sums);
  sum = first;
  UNROLL
  for (int w = 0; w < 8; ++w) {
    const u32 here = counts[w * 256 + own];
    counts[w * 256 + own] = sum;
    sum += here;
  }
  barrier();
  UNROLL
  for (int j = 0; j < keys; ++j) ranks[j] += warp[digits[j]];
  return first;
}
)";

// A line is at most a tile; n[94] lines are sorted together, last by their numbers if there are
// several.
constexpr std::string_view short_lines = R"(
template <int keys, bool has_several> DEVICE void sort_tile(const Arguments& a, u32* counts, Place* sums, Moved* moved) {
  const i64 first = (i64)block_index() * a.n[94];
  const u32 length = (u32)a.n[89], count = (u32)least<i64>(a.n[94], a.n[88] - first) * length;
  Keys line = first_keys(a, first);
  Bits own[keys];
  Place places[keys];
  u32 digits[keys], ranks[keys];
  UNROLL
  for (int j = 0; j < keys; ++j) {
    const u32 i = item_of<keys>(j);
    places[j] = (Place)i;
    own[j] = 0;
    if (i >= count) continue;
    if (IS_COMPUTED) {
      own[j] = first_key(a, i);
      places[j] = first_place(a, i);
      continue;
    }
    if (has_several) line = first_keys(a, first + i / length);
    own[j] = line.from[(has_several ? i % length : i) * line.step];
    if (IS_CHOSEN) places[j] = places_of(a, 0)[first * a.n[89] + i];
  }
  for (int step = 0; step < DIGITS + (has_several ? 1 : 0); ++step) {
    UNROLL
    for (int j = 0; j < keys; ++j)
      digits[j] = item_of<keys>(j) >= count ? 255u : step == DIGITS ? (u32)places[j] / length : digit_of(a, own[j], step);
    rank_digits<keys>(digits, ranks, counts, sums);
    UNROLL
    for (int j = 0; j < keys; ++j) moved[ranks[j]] = own[j];
    barrier();
    UNROLL
    for (int j = 0; j < keys; ++j) own[j] = (Bits)moved[item_of<keys>(j)];
    barrier();
    if (HAS_PLACES || has_several) {
      UNROLL
      for (int j = 0; j < keys; ++j) moved[ranks[j]] = (Moved)places[j];
      barrier();
      UNROLL
      for (int j = 0; j < keys; ++j) places[j] = (Place)moved[item_of<keys>(j)];
      barrier();
    }
  }
  i64 result = result_of(a, first);
  UNROLL
  for (int j = 0; j < keys; ++j) {
    const u32 i = item_of<keys>(j);
    if (i >= count) continue;
    if (has_several) result = result_of(a, first + i / length);
    write_sorted(a, result, has_several ? i % length : i, own[j], has_several ? (Place)((u32)places[j] % length) : places[j]);
  }
}
)";

// A line is many tiles; n[90]. Step by step: counts, their sums, keys to the other half, and by the
// last step where they belong.
constexpr std::string_view long_lines = R"(
DEVICE Tile own_tile(const Arguments& a) { return tile_of(a, a.n[89]); }
DEVICE Keys keys_at(const Arguments& a, const Tile& tile) {
  Keys keys;
  keys.from = keys_of(a, (a.step + 1) & 1) + tile.line * a.n[89];
  keys.step = 1;
  if (a.step == 0) keys = first_keys(a, tile.line);
  keys.from += tile.begin * keys.step;
  return keys;
}
DEVICE Bits key_at(const Arguments& a, const Tile& tile, const Keys& keys, u32 i) {
  return IS_COMPUTED && a.step == 0 ? first_key(a, tile.begin + i) : keys.from[i * keys.step];
}
DEVICE void count_digits(const Arguments& a, u32* digits) {
  const Tile tile = own_tile(a);
  const Keys keys = keys_at(a, tile);
  const u32 own = thread_index();
  digits[own] = 0;
  barrier();
  UNROLL
  for (u32 i = own; i < TILE; i += 256)
    if (i < tile.count) count_one(&digits[digit_of(a, key_at(a, tile, keys, i), a.step)]);
  barrier();
  counts_of(a)[(tile.line * 256 + own) * a.n[90] + tile.begin / TILE] = digits[own];
}
DEVICE void move_keys(const Arguments& a, u32* counts, Place* sums, Moved* moved) {
  const Tile tile = own_tile(a);
  const Keys given = keys_at(a, tile);
  const u32 own = thread_index();
  const i64 here = tile.line * a.n[89];
  Bits keys[KEYS];
  Place places[KEYS], targets[KEYS];
  u32 digits[KEYS], ranks[KEYS];
  UNROLL
  for (int j = 0; j < KEYS; ++j) {
    const u32 i = item_of<KEYS>(j);
    keys[j] = 0;
    digits[j] = 255u;
    places[j] = (Place)(tile.begin + i);
    if (i >= tile.count) continue;
    keys[j] = key_at(a, tile, given, i);
    digits[j] = digit_of(a, keys[j], a.step);
    if (IS_COMPUTED && a.step == 0) places[j] = first_place(a, tile.begin + i);
    else if (HAS_PLACES && a.step > 0) places[j] = places_of(a, (a.step + 1) & 1)[here + tile.begin + i];
  }
  const Place first = rank_digits<KEYS>(digits, ranks, counts, sums);
  const i64 digit = tile.line * 256 + own;
  const Place begin = sum_before(totals_of(a)[digit], sums) + counts_of(a)[digit * a.n[90] + tile.begin / TILE] - first;
  sums[own] = begin;
  UNROLL
  for (int j = 0; j < KEYS; ++j) moved[ranks[j]] = keys[j];
  barrier();
  UNROLL
  for (int j = 0; j < KEYS; ++j) {
    const u32 i = (u32)j * 256 + own;
    keys[j] = (Bits)moved[i];
    targets[j] = sums[digit_of(a, keys[j], a.step)] + (Place)i;
  }
  if (HAS_PLACES) {
    barrier();
    UNROLL
    for (int j = 0; j < KEYS; ++j) moved[ranks[j]] = (Moved)places[j];
    barrier();
    UNROLL
    for (int j = 0; j < KEYS; ++j) places[j] = (Place)moved[(u32)j * 256 + own];
  }
  const i64 result = result_of(a, tile.line);
  UNROLL
  for (int j = 0; j < KEYS; ++j) {
    if ((u32)j * 256 + own >= tile.count) continue;
    if (a.step == DIGITS - 1) {
      write_sorted(a, result, (i64)targets[j], keys[j], places[j]);
    } else {
      keys_of(a, a.step & 1)[here + targets[j]] = keys[j];
      if (HAS_PLACES) places_of(a, a.step & 1)[here + targets[j]] = places[j];
    }
  }
}
)";

// Of lines of n[98] keys only the first n[89] of each are wanted. Digits from the highest on tell
// up to which number of these digits that are: a step counts the next digit of the keys that begin
// with it, and the blocks of threads of the step after it read from the counts what was chosen.
// Chosen are the keys with a lower beginning, and of those with the same as many as are missing:
// the first ones, which is of consequence if all digits are told. They go to the workspace with
// their positions, and are sorted there.
constexpr std::string_view choice = R"(
// Of the upper `rounds` digits; how many are wanted of those that begin with `prefix`. It is exact if
// all of them are.
struct Choice { Bits prefix; Place wanted; u32 rounds; bool is_exact; };
DEVICE Choice* choices_of(const Arguments& a, i64 step) { return (Choice*)(a.workspace + a.n[96]) + step * a.n[88]; }
DEVICE Place* histograms_of(const Arguments& a, i64 step) { return (Place*)(a.workspace + a.n[97]) + step * a.n[88] * 256; }
DEVICE Tile given_tile(const Arguments& a) { return tile_of(a, a.n[98]); }
DEVICE Bits upper_digits(const Arguments& a, Bits key, u32 rounds) {
  return rounds == 0 ? (Bits)0 : (Bits)(order_of(a, key) >> (8 * (DIGITS - rounds)));
}
DEVICE void begin_choice(const Arguments& a, i64 at) {
  if (at < a.n[88] * 256) histograms_of(a, 0)[at] = 0;
}
// What is known when a.step steps have counted. The first block of threads of a line keeps it.
DEVICE Choice choice_of(const Arguments& a, const Tile& tile, Place* sums) {
  SHARED Choice chosen;
  const u32 own = thread_index();
  Choice known;
  known.prefix = 0;
  known.wanted = (Place)a.n[89];
  known.rounds = 0;
  known.is_exact = false;
  bool is_chosen = own == 0;
  if (a.step > 0) {
    known = choices_of(a, a.step - 1)[tile.line];
    const Place total = known.is_exact ? 0 : histograms_of(a, a.step - 1)[tile.line * 256 + own];
    const Place before = sum_before(total, sums);
    if (!known.is_exact) {
      is_chosen = before < known.wanted && before + total >= known.wanted;
      known.prefix = (Bits)((u64)known.prefix << 8 | own);
      known.wanted -= before;
      known.rounds += 1;
      known.is_exact = known.wanted == total;
    }
  }
  if (is_chosen) {
    chosen = known;
    if (tile.begin == 0) choices_of(a, a.step)[tile.line] = known;
  }
  barrier();
  return chosen;
}
DEVICE void count_upper(const Arguments& a, u32* digits, Place* sums) {
  const Tile tile = given_tile(a);
  const Choice known = choice_of(a, tile, sums);
  const u32 own = thread_index();
  if (tile.begin == 0 && a.step + 1 < DIGITS) histograms_of(a, a.step + 1)[tile.line * 256 + own] = 0;
  if (known.is_exact) return;
  const Keys keys = given_of(a, tile.line);
  digits[own] = 0;
  barrier();
  UNROLL
  for (u32 i = own; i < TILE; i += 256) {
    if (i >= tile.count) continue;
    const Bits key = keys.from[(tile.begin + i) * keys.step];
    if (upper_digits(a, key, (u32)a.step) == known.prefix) count_one(&digits[digit_of(a, key, DIGITS - 1 - a.step)]);
  }
  barrier();
  if (digits[own] > 0) add_to(histograms_of(a, a.step) + tile.line * 256 + own, (Place)digits[own]);
}
// Bits of the keys of this thread that begin lower, and of those that begin the same.
struct Chosen { u32 lower, same; };
DEVICE Chosen chosen_of(const Arguments& a, const Tile& tile, const Choice& known) {
  const Keys keys = given_of(a, tile.line);
  Chosen chosen;
  chosen.lower = chosen.same = 0;
  UNROLL
  for (int j = 0; j < KEYS; ++j) {
    const u32 i = item_of<KEYS>(j);
    if (i >= tile.count) continue;
    const Bits upper = upper_digits(a, keys.from[(tile.begin + i) * keys.step], known.rounds);
    if (upper < known.prefix) chosen.lower |= 1u << j;
    if (upper == known.prefix) chosen.same |= 1u << j;
  }
  return chosen;
}
DEVICE void count_chosen(const Arguments& a, Place* sums) {
  const Tile tile = given_tile(a);
  const Chosen chosen = chosen_of(a, tile, choice_of(a, tile, sums));
  const Place lower = bits_in(chosen.lower), same = bits_in(chosen.same);
  const Place lower_before = sum_before(lower, sums), same_before = sum_before(same, sums);
  if (thread_index() != 255) return;
  Place* const counts = counts_of(a) + tile.line * 2 * a.n[90] + tile.begin / TILE;
  counts[0] = lower_before + lower;
  counts[a.n[90]] = same_before + same;
}
// Where the first of the keys with these bits goes that a warp has.
DEVICE i64 first_of_warp(u32 bits, i64 before, Place* sums) {
  u32 in_warp = 0;
  UNROLL
  for (int j = 0; j < KEYS; ++j) in_warp += bits_in(lanes_where((bits >> j & 1u) != 0));
  return before + (i64)sum_before(thread_index() % 32 == 31 ? in_warp : 0, sums);
}
DEVICE void move_chosen(const Arguments& a, Place* sums) {
  const Tile tile = given_tile(a);
  const Choice known = choices_of(a, a.step)[tile.line];
  const Keys keys = given_of(a, tile.line);
  const Chosen chosen = chosen_of(a, tile, known);
  const u32 before_own = (1u << thread_index() % 32) - 1;
  const Place* const counts = counts_of(a) + tile.line * 2 * a.n[90] + tile.begin / TILE;
  i64 lower = first_of_warp(chosen.lower, (i64)counts[0], sums);
  i64 same = first_of_warp(chosen.same, (i64)counts[a.n[90]], sums);
  const i64 all_lower = (i64)totals_of(a)[tile.line * 2], line = tile.line * a.n[89];
  UNROLL
  for (int j = 0; j < KEYS; ++j) {
    const bool is_lower = (chosen.lower >> j & 1u) != 0, is_same = (chosen.same >> j & 1u) != 0;
    const u32 lower_lanes = lanes_where(is_lower), same_lanes = lanes_where(is_same);
    const i64 number = same + (i64)bits_in(same_lanes & before_own);
    const i64 to = is_lower ? lower + (i64)bits_in(lower_lanes & before_own) : all_lower + number;
    if (is_lower || (is_same && number < (i64)known.wanted)) {
      const i64 at = tile.begin + item_of<KEYS>(j);
      keys_of(a, 0)[line + to] = keys.from[at * keys.step];
      places_of(a, 0)[line + to] = (Place)at;
    }
    lower += (i64)bits_in(lower_lanes);
    same += (i64)bits_in(same_lanes);
  }
}
)";

/// Keys of a thread, and of a tile: as many as registers hold.
int64_t keys_of_thread(const RadixSort& sort) {
  return sort.key_bytes == 8 ? 8 : 16;
}
int64_t keys_of_tile(const RadixSort& sort) {
  return keys_of_thread(sort) * block_threads;
}

bool is_short(const RadixSort& sort) {
  return sort.length <= keys_of_tile(sort);
}

int64_t& number(RoutineText& made, Number at) {
  return made.arguments.numbers[static_cast<std::size_t>(at)];
}

int64_t take(RoutineText& made, int64_t bytes) {
  const std::size_t at = round_up(made.workspace_bytes, std::size_t{16});
  made.workspace_bytes = at + static_cast<std::size_t>(bytes);
  return static_cast<int64_t>(at);
}

constexpr std::string_view shared =
    "SHARED u32 counts[2048]; SHARED Place sums[256]; SHARED Moved moved[TILE];";

/// Whether keys that are not wanted are left out before the others are sorted.
bool is_choice(const RadixSort& sort) {
  constexpr int64_t worth = 8;
  return sort.wanted > 0 && !is_short(sort) &&
         sort.wanted <= std::min(sort.length / worth, keys_of_tile(sort));
}

void add_short_lines(const RadixSort& sort, int64_t length, RoutineText& made) {
  constexpr int64_t several = 4;  // keys of a thread where lines are many in a tile
  // What goes with a key tells its line, too, if it is the position among all of them.
  const bool has_positions = sort.places != RadixSort::Places::computed && !is_choice(sort);
  const bool has_several = has_positions && length <= block_threads / 2;
  const auto enough =
      std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(ceil_div(length, block_threads), 1)));
  const int64_t keys = has_several ? several : std::min<int64_t>(enough, keys_of_thread(sort));
  const int64_t group =
      has_several ? std::min<int64_t>(several * block_threads / std::max<int64_t>(length, 1), 256)
                  : 1;
  number(made, group_at) = group;
  made.text += short_lines;
  made.add_step(
      fmt::format("{} sort_tile<{}, {}>(a, counts, sums, moved)", shared, keys, has_several),
      ceil_div(sort.lines, group) * block_threads);
}

void add_choice(const RadixSort& sort, RoutineText& made) {
  const int64_t tiles = ceil_div(sort.length, keys_of_tile(sort));
  const Counts counts = {sort.lines, tiles, 2, sort.place_bytes};
  open_counts(counts, made);
  made.text += radix_words;
  made.text += choice;
  const int64_t threads = sort.lines * tiles * block_threads;
  made.add_step("begin_choice(a, at)", sort.lines * 256);
  for (int step = 0; step < sort.digits; ++step) {
    made.add_step("SHARED u32 digits[256]; SHARED Place sums[256]; count_upper(a, digits, sums)",
                  threads, step);
  }
  made.add_step("SHARED Place sums[256]; count_chosen(a, sums)", threads, sort.digits);
  add_sum_of_counts(counts, made);
  made.add_step("SHARED Place sums[256]; move_chosen(a, sums)", threads, sort.digits);
  add_short_lines(sort, sort.wanted, made);
}

void add_long_lines(const RadixSort& sort, RoutineText& made) {
  const int64_t tiles = ceil_div(sort.length, keys_of_tile(sort));
  const Counts counts = {sort.lines, tiles, 256, sort.place_bytes};
  open_counts(counts, made);
  made.text += radix_words;
  made.text += long_lines;
  const int64_t threads = sort.lines * tiles * block_threads;
  for (int step = 0; step < sort.digits; ++step) {
    made.add_step("SHARED u32 digits[256]; count_digits(a, digits)", threads, step);
    add_sum_of_counts(counts, made);
    made.add_step(fmt::format("{} move_keys(a, counts, sums, moved)", shared), threads, step);
  }
}

}  // namespace

void open_radix_sort(const RadixSort& sort, RoutineText& made) {
  using Places = RadixSort::Places;
  number(made, lines_at) = sort.lines;
  const bool is_chosen = is_choice(sort), has_places = sort.places != Places::none;
  const bool is_computed = sort.places == Places::computed;
  const int64_t length = is_chosen ? sort.wanted : sort.length;
  number(made, length_at) = length;
  const int64_t in_halves = sort.lines * length *
                            (is_chosen        ? 1
                             : is_computed    ? std::min(2, sort.digits)
                             : is_short(sort) ? 0
                                              : std::min(2, sort.digits - 1));
  take(made, in_halves * sort.key_bytes);
  number(made, places_at) = take(made, has_places ? in_halves * sort.place_bytes : 0);
  if (is_chosen) {
    constexpr int64_t choice_bytes = 24;  // sizeof(Choice) at most
    number(made, given_at) = sort.length;
    number(made, choices_at) = take(made, (sort.digits + 1) * sort.lines * choice_bytes);
    number(made, histograms_at) = take(made, sort.digits * sort.lines * 256 * sort.place_bytes);
  }
  made.text += fmt::format(
      "typedef u{} Bits;\ntypedef u{} Place;\ntypedef u{} Moved;\n"
      "#define DIGITS {}\n#define HAS_PLACES {:d}\n#define IS_COMPUTED {:d}\n"
      "#define KEYS {}\n#define TILE {}\n#define IS_CHOSEN {:d}\n",
      8 * sort.key_bytes, 8 * sort.place_bytes, 8 * std::max(sort.key_bytes, sort.place_bytes),
      sort.digits, has_places, is_computed, keys_of_thread(sort), keys_of_tile(sort), is_chosen);
  made.text += halves;
  if (is_computed) return;
  made.text +=
      "DEVICE Bits first_key(const Arguments&, i64) { return 0; }\n"
      "DEVICE Place first_place(const Arguments&, i64) { return 0; }\n";
}

void open_counts(const Counts& counts, RoutineText& made) {
  int64_t lanes = 256 / std::min(counts.digits, 256);
  while (lanes < 256 && 8 * lanes < counts.tiles) lanes *= 2;
  number(made, lines_at) = counts.lines;
  number(made, tiles_at) = counts.tiles;
  number(made, digits_at) = counts.digits;
  number(made, lanes_at) = lanes;
  number(made, counts_at) = take(
      made, counts.lines * counts.digits * (counts.tiles + 1) * static_cast<int64_t>(counts.bytes));
  made.text += counts_text;
}

void add_sum_of_counts(const Counts& counts, RoutineText& made) {
  made.add_step("SHARED Place sums[256]; sum_counts(a, sums)",
                counts.lines * counts.digits * number(made, lanes_at));
}

void add_radix_sort(const RadixSort& sort, RoutineText& made) {
  if (is_choice(sort)) return add_choice(sort, made);
  if (!is_short(sort)) return add_long_lines(sort, made);
  made.text += counts_text;
  made.text += radix_words;
  add_short_lines(sort, sort.length, made);
}

}  // namespace nitinol::cuda
