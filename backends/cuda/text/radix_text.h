// The text of a stable radix sort: what sort, argsort and scattered values are made of.
#pragma once

#include <cstdint>

namespace nitinol::cuda {

struct RoutineText;

/// Lines of keys, each sorted by itself.
struct RadixSort {
  int key_bytes = 8;              ///< of the type of a key: 1, 2, 4 or 8
  int64_t lines = 1, length = 0;  ///< of a line
  int digits = 1;                 ///< of 8 bits, by which keys are sorted; at least one
  bool has_places = false;        ///< whether a key takes with it where it stood in its line
  /// Whether sorted keys and places go to write_key() and write_place(). If not, keys_of(a, half)
  /// and places_of(a, half) have them, `half` being (digits - 1) % 2.
  bool has_writers = false;
};

/// Begins a text that sorts, with the types Bits and Place. What follows defines
///
///     struct Line { ... };                    // what is known of a line, whatever its keys
///     Line line_of(const Arguments&, i64 line);
///     Bits given_key(const Arguments&, const Line&, i64 i);
///     u32 digit_of(const Arguments&, Bits key, i64 number);  // 8 bits, the lowest first
///     void write_key(const Arguments&, const Line&, i64 i, Bits key);
///     void write_place(const Arguments&, const Line&, i64 i, Place place);
///
/// and then comes add_radix_sort(). It uses the numbers from 88 on.
void open_radix_sort(const RadixSort& sort, RoutineText& made);
void add_radix_sort(const RadixSort& sort, RoutineText& made);

/// How often what occurs in the tiles of lines.
struct Counts {
  int64_t lines, tiles;  ///< of a line
  int digits;            ///< 1 or 256: what is counted
  int bytes;             ///< of a count: 4 or 8
};

/// Adds to a text that knows the type Place, of the counts: counts_of(a), [lines][digits][tiles] in
/// the workspace behind what is there; totals_of(a), [lines][digits]; and sum_before(value, sums),
/// of what the threads before this one have, for which `sums` are 256 shared words.
void open_counts(const Counts& counts, RoutineText& made);
/// The step after which each count is that of the tiles before, and the totals are known.
void add_sum_of_counts(const Counts& counts, RoutineText& made);

}  // namespace nitinol::cuda
