// A line is read into keys, which are exact, stable and the same on any number of threads, where
// comparisons of floats are none of these. A radix sort orders them, or vectors do where they are
// faster (docs/decisions/0027-vectors-sort-keys.md). Short lines go to threads by blocks (lines.h),
// those of a few keys side by side (sorting_network.h); long ones are sorted by all threads, one
// after another.
//
// The first ones are chosen without a sort: a buffer takes what is before the worst of the best
// known so far, of which there is soon next to nothing, so that the line is read once. A few are
// kept in order as they come.
#include "backends/host/order.h"

#include "backends/host/array.h"
#include "backends/host/keys.h"
#include "backends/host/lines.h"
#include "backends/host/per_isa.h"
#include "backends/host/radix_sort.h"
#include "backends/host/sorting_network.h"
#include "backends/host/split.h"
#include "backends/host/vector_sort.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace nitinol::host {
namespace {

constexpr int64_t long_line = 65536, fewest_networked = 4;

/// Calls by_line(block, c, parts) for line c of each block, which as many threads may share as
/// `parts` says; or, where there are several lines of a few elements, side_by_side(block).
template <class ByLine, class SideBySide>
void for_each_line(const LibraryCall& call, const Launch& launch, const ByLine& by_line,
                   const SideBySide& side_by_side) {
  const Lines lines(call);
  const int64_t size = call.operands[0].shape[call.axis];
  const bool is_long = size >= long_line;
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const Lines::Block block = lines.block(b);
      if (size <= longest_networked && block.lines >= fewest_networked) {
        side_by_side(block);
        continue;
      }
      for (int64_t c = 0; c < block.lines; ++c) by_line(block, c, is_long ? launch.threads : 1);
    }
  };
  if (is_long) return run(0, lines.blocks());
  split(lines.blocks(), lines.grain(call.operands[0]), launch.threads, run);
}

/// keys[0, count), of which two halves are sorted, into `to` from both ends at once.
template <class K>
void merge_halves(const K* keys, int64_t count, K* to) {
  const int64_t half = count / 2;
  const K* const upper = keys + half;
  const auto from_front = [&] {
    for (int64_t k = 0, i = 0, j = 0; k < half; ++k) {
      const K a = keys[i], b = upper[j];
      const auto from_lower = static_cast<int64_t>(a <= b);
      to[k] = std::min(a, b);
      i += from_lower;
      j += 1 - from_lower;
    }
  };
  const auto from_back = [&] {
    for (int64_t k = count - 1, i = half - 1, j = count - half - 1; k >= half; --k) {
      const K a = i < 0 ? K{0} : keys[i], b = upper[j];
      const auto from_lower = static_cast<int64_t>(a > b);
      to[k] = std::max(a, b);
      i -= from_lower;
      j -= 1 - from_lower;
    }
  };
  split(2, 1, 2, [&](int64_t first, int64_t last) {
    if (first == 0) from_front();
    if (last == 2) from_back();
  });
}

/// Sorts keys by vectors, by two threads if there are more parts than one: a long line.
template <class K>
void sort_by_vectors(Array<K>& keys, int64_t count, int parts) {
  if (parts == 1) return vector_sort(keys.get(), count);
  split(2, 1, 2, [&](int64_t first, int64_t last) {
    for (int64_t half = first; half < last; ++half) {
      const int64_t begin = half == 0 ? 0 : count / 2, end = half == 0 ? count / 2 : count;
      vector_sort(keys.get() + begin, end - begin);
    }
  });
  Array<K> merged(count);
  merge_halves(keys.get(), count, merged.get());
  keys = std::move(merged);
}

/// Whether vectors sort keys of `bytes` before a radix sort by that many threads does.
bool is_for_vectors(std::size_t bytes, int64_t count, int parts) {
  constexpr int64_t few = 48;
  if (bytes == 8 && !vectors_sort_wide_keys(count)) return false;
  return count >= few && bytes >= 2 && parts <= (bytes == 8 ? 2 : 6);
}

// ---- sort

template <DType dtype>
struct ReadKeys {
  using Stored = typename Elements<dtype>::Stored;
  using K = Key<dtype>;

  template <class Width>
  void operator()(Width, const Stored* from, int64_t step, int64_t size, K flip, K* keys) const {
    if (step == 1) {
      for (int64_t i = 0; i < size; ++i) keys[i] = static_cast<K>(key_of<dtype>(from[i]) ^ flip);
    } else {
      for (int64_t i = 0; i < size; ++i)
        keys[i] = static_cast<K>(key_of<dtype>(from[i * step]) ^ flip);
    }
  }
};

template <DType dtype>
struct WriteElements {
  using Stored = typename Elements<dtype>::Stored;
  using K = Key<dtype>;

  template <class Width>
  void operator()(Width, const K* keys, int64_t size, K flip, Stored* to, int64_t step) const {
    if (step == 1) {
      for (int64_t i = 0; i < size; ++i) to[i] = element_of<dtype>(static_cast<K>(keys[i] ^ flip));
    } else {
      for (int64_t i = 0; i < size; ++i)
        to[i * step] = element_of<dtype>(static_cast<K>(keys[i] ^ flip));
    }
  }
};

/// One line of elements.
template <DType dtype>
class SortedLine {
 public:
  using Stored = typename Elements<dtype>::Stored;
  using K = Key<dtype>;

  SortedLine(const Stored* from, int64_t step, int64_t size, bool is_descending)
      : from_(from), step_(step), size_(size), flip_(is_descending ? K(~K{0}) : K{0}) {}

  void write(Stored* to, int64_t to_step, int parts) {
    Array<K> memory(size_);
    K* keys = memory.get();
    constexpr int64_t grain = long_line / 2;
    split(size_, grain, parts, [&](int64_t first, int64_t last) {
      PerIsa<ReadKeys<dtype>, const Stored*, int64_t, int64_t, K, K*>::at(current_isa())(
          from_ + first * step_, step_, last - first, flip_, keys + first);
    });
    sort_keys(memory, size_, parts);
    keys = memory.get();
    split(size_, grain, parts, [&](int64_t first, int64_t last) {
      PerIsa<WriteElements<dtype>, const K*, int64_t, K, Stored*, int64_t>::at(current_isa())(
          keys + first, last - first, flip_, to + first * to_step, to_step);
    });
    if constexpr (floating.contains(dtype)) {  // keys do not tell all of their bits
      write_all_of(keys, K(~K{0}), to, to_step);
      write_all_of(keys, top_bit<K>, to, to_step);
    }
  }

 private:
  static void sort_keys(Array<K>& keys, int64_t count, int parts) {
    if constexpr (sizeof(K) > 1) {
      if (is_for_vectors(sizeof(K), count, parts)) return sort_by_vectors(keys, count, parts);
    }
    const Array<K> beside(count);
    RadixSort<K>(keys.get(), beside.get(), count, parts).run();
  }

  /// The elements of this key, in their order.
  void write_all_of(const K* keys, K key, Stored* to, int64_t to_step) const {
    const auto sought = static_cast<K>(key ^ flip_);
    const K* const found = std::lower_bound(keys, keys + size_, sought);
    if (found == keys + size_ || *found != sought) return;
    to += (found - keys) * to_step;
    for (int64_t i = 0; i < size_; ++i) {
      const Stored element = from_[i * step_];
      if (key_of<dtype>(element) != key) continue;
      *to = element;
      to += to_step;
    }
  }

  const Stored* from_;
  int64_t step_, size_;
  K flip_;
};

// ---- argsort

template <class K>
bool is_before(const Positioned<K>& a, const Positioned<K>& b) {
  return a.key != b.key ? a.key < b.key : a.at < b.at;
}

/// The first `count` of a line, in order.
template <DType dtype>
struct ChooseFirst {
  using Stored = typename Elements<dtype>::Stored;
  using K = Key<dtype>;
  using Entry = Positioned<K>;
  static constexpr int64_t at_once = 64, few = 16;

  template <class Width>
  void operator()(Width width, const Stored* from, int64_t step, int64_t size, int64_t count,
                  K flip, std::vector<Entry>* best) const {
    best->clear();
    const auto room = static_cast<std::size_t>(count * 2 + at_once);
    best->reserve(room + at_once);
    K bound = std::numeric_limits<K>::max();
    bool is_bounded = false;
    std::array<K, at_once> keys;
    for (int64_t first = 0; first < size; first += at_once) {
      const int64_t last = std::min(first + at_once, size);
      keys.fill(std::numeric_limits<K>::max());
      if (last - first == at_once)
        ReadKeys<dtype>()(width, from + first * step, step, at_once, flip, keys.data());
      else
        ReadKeys<dtype>()(width, from + first * step, step, last - first, flip, keys.data());
      if (is_bounded) {
        K least = std::numeric_limits<K>::max();
        for (const K key : keys) least = std::min(least, key);
        if (least >= bound) continue;
      }
      for (int64_t i = first; i < last; ++i) {
        const K key = keys[static_cast<std::size_t>(i - first)];
        if (is_bounded && key >= bound) continue;
        const Entry entry = {key, static_cast<uint32_t>(i)};
        if (count > few) {
          best->push_back(entry);
          continue;
        }
        insert(entry, count, *best);
        bound = best->back().key;
        is_bounded = static_cast<int64_t>(best->size()) == count;
      }
      if (best->size() < room) continue;
      keep(count, *best);
      bound = best->back().key;
      is_bounded = true;
    }
    if (count <= few) return;
    keep(count, *best);
    std::sort(best->begin(), best->end(), is_before<K>);
  }

 private:
  /// Among the best ones, in order, of which none is of a later position.
  static void insert(const Entry& entry, int64_t count, std::vector<Entry>& best) {
    if (static_cast<int64_t>(best.size()) < count)
      best.push_back(entry);
    else
      best.back() = entry;
    for (std::size_t k = best.size() - 1; k > 0 && best[k - 1].key > entry.key; --k)
      std::swap(best[k - 1], best[k]);
  }

  /// The best ones, the last of them at the end.
  static void keep(int64_t count, std::vector<Entry>& best) {
    if (static_cast<int64_t>(best.size()) <= count) return;
    std::nth_element(best.begin(), best.begin() + (count - 1), best.end(), is_before<K>);
    best.resize(static_cast<std::size_t>(count));
  }
};

template <DType dtype>
void order_line(const typename Elements<dtype>::Stored* from, int64_t step, int64_t size,
                bool is_descending, int parts, int64_t* to, int64_t to_step, int64_t count) {
  using K = Key<dtype>;
  using Entry = Positioned<K>;
  const K flip = is_descending ? K(~K{0}) : K{0};
  if (count == 0) return;
  if (count <= size / 8) {
    std::vector<Entry> best;
    PerIsa<ChooseFirst<dtype>, const typename Elements<dtype>::Stored*, int64_t, int64_t, int64_t,
           K, std::vector<Entry>*>::at(current_isa())(from, step, size, count, flip, &best);
    for (int64_t i = 0; i < count; ++i) to[i * to_step] = best[static_cast<std::size_t>(i)].at;
    return;
  }
  if constexpr (sizeof(K) <= 4) {
    if (is_for_vectors(sizeof(uint32_t), size, parts)) {
      constexpr int position_bits = 32;
      Array<uint64_t> both(size);
      for (int64_t i = 0; i < size; ++i) {
        const auto key = static_cast<K>(key_of<dtype>(from[i * step]) ^ flip);
        both.get()[i] = static_cast<uint64_t>(key) << position_bits | static_cast<uint64_t>(i);
      }
      sort_by_vectors(both, size, parts);
      for (int64_t i = 0; i < count; ++i) to[i * to_step] = static_cast<uint32_t>(both.get()[i]);
      return;
    }
  }
  const Array<Entry> entries(size), beside(size);
  for (int64_t i = 0; i < size; ++i) {
    entries.get()[i] = {static_cast<K>(key_of<dtype>(from[i * step]) ^ flip),
                        static_cast<uint32_t>(i)};
  }
  RadixSort<Entry>(entries.get(), beside.get(), size, parts).run();
  for (int64_t i = 0; i < count; ++i) to[i * to_step] = entries.get()[i].at;
}

// ---- lines of a few elements

/// A block of them, side by side: element i of line c is at [i * lines_side_by_side + c].
template <DType dtype>
class ShortLines {
 public:
  using Stored = typename Elements<dtype>::Stored;
  using K = Key<dtype>;

  ShortLines(const Stored* x, const Lines::Block& block, int64_t size, bool is_descending)
      : lines_(block.lines), size_(size), flip_(is_descending ? K(~K{0}) : K{0}) {
    const Lines::Walk& walk = block.walks[0];
    if (lines_ < lines_side_by_side) elements_.fill(Stored{});
    if (walk.along == 1) {
      read_side_by_side(x, walk, lines_, size_, elements_.data(), lines_side_by_side);
    } else {
      for_each([&](int64_t i, int64_t c) { elements_[place(i, c)] = x[walk.at(i, c)]; });
    }
    PerIsa<ReadKeys<dtype>, const Stored*, int64_t, int64_t, K, K*>::at(current_isa())(
        elements_.data(), 1, size_ * lines_side_by_side, flip_, keys_.data());
  }

  void sort(Stored* out, const Lines::Walk& walk) {
    network_sort(keys_.data(), size_);
    Memory<Stored> sorted;
    PerIsa<WriteElements<dtype>, const K*, int64_t, K, Stored*, int64_t>::at(current_isa())(
        keys_.data(), size_ * lines_side_by_side, flip_, sorted.data(), 1);
    if constexpr (floating.contains(dtype)) {
      if (loses_bits()) write_lost(sorted);
    }
    if (walk.along == 1)
      return write_side_by_side(sorted.data(), lines_side_by_side, lines_, size_, out, walk);
    for_each([&](int64_t i, int64_t c) { out[walk.at(i, c)] = sorted[place(i, c)]; });
  }

  /// Where the first `count` of each line are.
  void order(int64_t* out, const Lines::Walk& walk, int64_t count) const {
    using Wide = std::conditional_t<sizeof(K) == 8, uint64_t, uint32_t>;
    Memory<Wide> keys, positions;
    for (int64_t i = 0; i < size_; ++i) {
      for (int64_t c = 0; c < lines_side_by_side; ++c) {
        keys[place(i, c)] = keys_[place(i, c)];
        positions[place(i, c)] = static_cast<Wide>(i);
      }
    }
    network_sort(keys.data(), positions.data(), size_);
    for (int64_t c = 0; c < lines_; ++c) {
      for (int64_t i = 0; i < count; ++i)
        out[walk.at(i, c)] = static_cast<int64_t>(positions[place(i, c)]);
    }
  }

 private:
  template <class T>
  struct alignas(64) Memory : std::array<T, longest_networked * lines_side_by_side> {
    Memory() {}  // NOLINT: filled by those who use it
  };

  static std::size_t place(int64_t i, int64_t c) {
    return static_cast<std::size_t>(i * lines_side_by_side + c);
  }

  template <class F>
  void for_each(const F& f) const {
    for (int64_t i = 0; i < size_; ++i) {
      for (int64_t c = 0; c < lines_; ++c) f(i, c);
    }
  }

  /// Whether there is a -0 or a NaN, of which a key does not tell all bits.
  [[nodiscard]] bool loses_bits() const {
    bool is_lost = false;
    for (int64_t i = 0; i < size_ * lines_side_by_side; ++i) {
      const Stored element = elements_[static_cast<std::size_t>(i)];
      is_lost |= std::bit_cast<K>(element) == top_bit<K> || is_nan<dtype>(element);
    }
    return is_lost;
  }

  /// Zeros and NaN, in their order.
  void write_lost(Memory<Stored>& sorted) const {
    for (const K key : {K(~K{0}), top_bit<K>}) {
      for (int64_t c = 0; c < lines_; ++c) {
        int64_t to = 0;
        while (to < size_ && keys_[place(to, c)] != static_cast<K>(key ^ flip_)) ++to;
        for (int64_t i = 0; i < size_; ++i) {
          const Stored element = elements_[place(i, c)];
          if (key_of<dtype>(element) == key) sorted[place(to++, c)] = element;
        }
      }
    }
  }

  const int64_t lines_, size_;
  const K flip_;
  Memory<Stored> elements_;
  Memory<K> keys_;
};

}  // namespace

void sort(const LibraryCall& call, const Launch& launch) {
  check_countable(call.operands[0].shape[call.axis]);
  const int64_t size = call.operands[0].shape[call.axis];
  with_ordered_type(call.operands[0].dtype, [&](auto dtype) {
    using Stored = typename Elements<dtype.value>::Stored;
    const auto* const x = static_cast<const Stored*>(launch.buffers[0]);
    auto* const out = static_cast<Stored*>(launch.buffers[1]);
    const auto by_line = [&](const Lines::Block& block, int64_t c, int parts) {
      SortedLine<dtype.value>(x + block.walks[0].at(0, c), block.walks[0].along, size,
                              call.is_descending)
          .write(out + block.walks[1].at(0, c), block.walks[1].along, parts);
    };
    for_each_line(call, launch, by_line, [&](const Lines::Block& block) {
      ShortLines<dtype.value>(x, block, size, call.is_descending).sort(out, block.walks[1]);
    });
  });
}

void argsort(const LibraryCall& call, const Launch& launch) {
  check_countable(call.operands[0].shape[call.axis]);
  const int64_t size = call.operands[0].shape[call.axis];
  const int64_t count = call.operands[1].shape[call.axis];
  with_ordered_type(call.operands[0].dtype, [&](auto dtype) {
    using Stored = typename Elements<dtype.value>::Stored;
    const auto* const x = static_cast<const Stored*>(launch.buffers[0]);
    auto* const out = static_cast<int64_t*>(launch.buffers[1]);
    const auto by_line = [&](const Lines::Block& block, int64_t c, int parts) {
      order_line<dtype.value>(x + block.walks[0].at(0, c), block.walks[0].along, size,
                              call.is_descending, parts, out + block.walks[1].at(0, c),
                              block.walks[1].along, count);
    };
    for_each_line(call, launch, by_line, [&](const Lines::Block& block) {
      ShortLines<dtype.value>(x, block, size, call.is_descending).order(out, block.walks[1], count);
    });
  });
}

}  // namespace nitinol::host
