// The text of a stable radix sort: what sort, argsort and scattered values are made of.
#pragma once

#include <cstdint>

namespace nitinol::cuda {

struct RoutineText;

/// Lines of keys, each sorted by itself.
struct RadixSort {
  int key_bytes = 8;              ///< of the type of a key: 1, 2, 4 or 8
  int place_bytes = 4;            ///< of what goes with a key: 4 or 8
  int64_t lines = 1, length = 0;  ///< of a line
  int digits = 1;                 ///< of 8 bits, by which keys are sorted; at least one
  int64_t wanted = 0;             ///< only the first ones of each line, if not 0
  /// What goes with a key: nothing, where it stood in its line, or what the text computes for it,
  /// as it does the key.
  enum class Places : uint8_t { none, positions, computed } places = Places::none;
};

/// Begins a text that sorts: the types Bits and Place, and the two halves of the workspace,
/// keys_of(a, half) and places_of(a, half), each of the size of all lines. What follows defines
///
///     Keys given_of(const Arguments&, i64 line);  // struct Keys { const Bits* from; i64 step; }
///     Bits order_of(const Arguments&, Bits key);  // by which keys are sorted
///     i64 result_of(const Arguments&, i64 line);
///     void write_sorted(const Arguments&, i64 result, i64 i, Bits key, Place place);
///
/// and then comes add_radix_sort(). Where keys are computed, of one line, it defines
///
///     Bits first_key(const Arguments&, i64 i); Place first_place(const Arguments&, i64 i);
///
/// and given_of is not asked; and keys and places may be written into half (digits - 1) % 2. It
/// uses the numbers from 88 on.
void open_radix_sort(const RadixSort& sort, RoutineText& made);
void add_radix_sort(const RadixSort& sort, RoutineText& made);

/// How often what occurs in the tiles of lines.
struct Counts {
  int64_t lines, tiles;  ///< of a line
  int digits;            ///< 1, 2 or 256: what is counted
  int bytes;             ///< of a count: 4 or 8
};

/// Adds to a text that knows the type Place, of the counts: counts_of(a), [lines][digits][tiles] in
/// the workspace behind what is there; totals_of(a), [lines][digits]; and sum_before(value, sums),
/// of what the threads before this one have, for which `sums` are 256 shared words.
void open_counts(const Counts& counts, RoutineText& made);
/// The step after which each count is that of the tiles before, and the totals are known.
void add_sum_of_counts(const Counts& counts, RoutineText& made);

}  // namespace nitinol::cuda
