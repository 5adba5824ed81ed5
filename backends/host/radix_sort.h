// A stable radix sort of keys, with or without positions.
//
// Keys are ordered by the bits in which they differ, from the top: as many as tell apart that many
// keys if they are evenly spread, eight at a time from the lowest of these to the highest (each
// pass counts the digits and moves what has them). What then still has equal upper bits lies
// together, and is sorted by itself: mostly pairs. So 10^6 random keys of 64 bits take three passes
// and not eight, and small integers one or two.
//
// Parts of a line are counted and moved by threads of their own; each digit's place is that of the
// parts in their order, so that the result is the same.
#pragma once

#include "backends/host/split.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace nitinol::host {

/// Throws Error(unsupported) for more elements than positions of 32 bits tell apart.
void check_countable(int64_t elements);

/// A key, and where it was.
template <class Key>
struct [[gnu::packed]] Positioned {
  Key key;
  uint32_t at;
};

template <class K>
inline K key_in(const Positioned<K>& entry) {
  return entry.key;
}
template <std::unsigned_integral K>
inline K key_in(K key) {
  return key;
}

/// Sorts `Entry`s (keys, or Positioned keys) with an array of their size beside them.
template <class Entry>
class RadixSort {
 public:
  using Key = decltype(key_in(std::declval<Entry>()));

  /// Of entries[0, count); `beside` is of any content.
  RadixSort(Entry* entries, Entry* beside, int64_t count, int parts)
      : entries_(entries), beside_(beside), count_(count), parts_(parts) {}

  void run() {
    if (count_ <= few) return insert();
    const int width = bits_that_differ();
    if (width == 0) return;
    const int enough = static_cast<int>(std::bit_width(static_cast<uint64_t>(count_))) + 4;
    const int passes = (std::min(width, enough) + digit_bits - 1) / digit_bits;
    const int rest = std::max(width - passes * digit_bits, 0);
    for (int pass = 0; pass < passes; ++pass) move_by_digit(rest + pass * digit_bits);
    if (passes % 2 != 0) {
      std::swap(entries_, beside_);
      for_each_part([&](int64_t first, int64_t last) {
        std::copy(beside_ + first, beside_ + last, entries_ + first);
      });
    }
    if (rest > 0) sort_rests(rest);
  }

 private:
  static constexpr int64_t few = 32;
  static constexpr int digit_bits = 8;
  using Counts = std::array<uint32_t, 1 << digit_bits>;

  static std::size_t digit_of(Entry entry, int shift) {
    return static_cast<std::size_t>(key_in(entry) >> shift) & 255U;
  }
  [[nodiscard]] int64_t start_of(int64_t part) const { return part * count_ / parts_; }

  template <class F>
  void for_each_part(const F& f) const {
    if (parts_ == 1) return f(0, count_);
    split(parts_, 1, parts_, [&](int64_t first, int64_t last) {
      for (int64_t part = first; part < last; ++part) f(start_of(part), start_of(part + 1));
    });
  }

  void insert() {
    for (int64_t i = 1; i < count_; ++i) {
      const Entry entry = entries_[i];
      int64_t to = i;
      for (; to > 0 && key_in(entries_[to - 1]) > key_in(entry); --to)
        entries_[to] = entries_[to - 1];
      entries_[to] = entry;
    }
  }

  /// From the highest bit that is not the same in all keys.
  [[nodiscard]] int bits_that_differ() const {
    const Key first = key_in(entries_[0]);
    std::vector<Key> differ(static_cast<std::size_t>(parts_));
    for_each_part([&](int64_t begin, int64_t end) {
      Key bits = 0;
      for (int64_t i = begin; i < end; ++i) bits |= static_cast<Key>(key_in(entries_[i]) ^ first);
      differ[static_cast<std::size_t>(part_at(begin))] = bits;
    });
    Key bits = 0;
    for (const Key part : differ) bits |= part;
    return static_cast<int>(std::bit_width(bits));
  }
  [[nodiscard]] int64_t part_at(int64_t begin) const {
    int64_t part = begin * parts_ / count_;
    while (start_of(part) < begin) ++part;
    return part;
  }

  void move_by_digit(int shift) {
    std::vector<Counts> counts(static_cast<std::size_t>(parts_));
    for_each_part([&](int64_t begin, int64_t end) {
      Counts own = {};
      for (int64_t i = begin; i < end; ++i) ++own[digit_of(entries_[i], shift)];
      counts[static_cast<std::size_t>(part_at(begin))] = own;
    });
    uint32_t before = 0;
    for (std::size_t digit = 0; digit < Counts().size(); ++digit) {
      for (Counts& part : counts) before += std::exchange(part[digit], before);
    }
    for_each_part([&](int64_t begin, int64_t end) {
      Counts places = counts[static_cast<std::size_t>(part_at(begin))];
      for (int64_t i = begin; i < end; ++i) {
        const Entry entry = entries_[i];
        beside_[places[digit_of(entry, shift)]++] = entry;
      }
    });
    std::swap(entries_, beside_);
  }

  /// Runs of keys that are equal but for their lowest bits. A part has those that begin in it.
  void sort_rests(int rest) const {
    const auto upper = [&](int64_t i) { return static_cast<Key>(key_in(entries_[i]) >> rest); };
    for_each_part([&](int64_t begin, int64_t end) {
      int64_t i = begin;
      while (i > 0 && i < count_ && upper(i) == upper(i - 1)) ++i;
      while (i < end) {
        int64_t next = i + 1;
        while (next < count_ && upper(next) == upper(i)) ++next;
        if (next - i > 1) RadixSort(entries_ + i, beside_ + i, next - i, 1).run();
        i = next;
      }
    });
  }

  Entry* entries_;
  Entry* beside_;
  const int64_t count_;
  const int parts_;
};

}  // namespace nitinol::host
