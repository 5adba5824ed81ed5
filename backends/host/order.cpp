// A line is read into keys, which are exact, stable and the same on any number of threads, where
// comparisons of floats are none of these. A radix sort orders them, or vectors do where they are
// faster (docs/decisions/0027-vectors-sort-keys.md). Short lines go to threads by blocks (lines.h);
// long ones are sorted by all threads, one after another.
//
// The first few are chosen without a sort: a buffer takes what is before the worst of the best
// known so far, of which there is soon next to nothing, so that the line is read once.
#include "backends/host/order.h"

#include "backends/host/keys.h"
#include "backends/host/lines.h"
#include "backends/host/per_isa.h"
#include "backends/host/radix_sort.h"
#include "backends/host/split.h"
#include "backends/host/vector_sort.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

namespace nitinol::host {
namespace {

constexpr int64_t long_line = 65536;

/// Calls f(block, c, parts) for line c of each block, which as many threads may share as `parts`
/// says.
template <class F>
void for_each_line(const LibraryCall& call, const Launch& launch, const F& f) {
  const Lines lines(call);
  const bool is_long = call.operands[0].shape[call.axis] >= long_line;
  const auto run = [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const Lines::Block block = lines.block(b);
      for (int64_t c = 0; c < block.lines; ++c) f(block, c, is_long ? launch.threads : 1);
    }
  };
  if (is_long) return run(0, lines.blocks());
  split(lines.blocks(), lines.grain(call.operands[0]), launch.threads, run);
}

/// Whether vectors sort keys of `bytes` before a radix sort by that many threads does.
bool is_for_vectors(std::size_t bytes, int64_t count, int parts) {
  constexpr int64_t few = 48;
  return count >= few && bytes >= 2 && bytes <= 4 && parts <= 2;
}

// ---- sort

/// One line of elements.
template <DType dtype>
class SortedLine {
 public:
  using Stored = typename Elements<dtype>::Stored;
  using K = Key<dtype>;

  SortedLine(const Stored* from, int64_t step, int64_t size, bool is_descending)
      : from_(from), step_(step), size_(size), flip_(is_descending ? K(~K{0}) : K{0}) {}

  void write(Stored* to, int64_t to_step, int parts) {
    const auto keys = std::make_unique_for_overwrite<K[]>(static_cast<std::size_t>(size_));
    int64_t numbers = 0, nans = 0;
    for (int64_t i = 0; i < size_; ++i) {
      const Stored element = from_[i * step_];
      keys[static_cast<std::size_t>(numbers)] = static_cast<K>(key_of<dtype>(element) ^ flip_);
      numbers += is_nan<dtype>(element) ? 0 : 1;
    }
    nans = size_ - numbers;
    sort_keys(keys.get(), numbers, parts);
    Stored* const first = to + (flip_ != 0 ? nans * to_step : 0);
    for (int64_t i = 0; i < numbers; ++i) {
      first[i * to_step] =
          element_of<dtype>(static_cast<K>(keys[static_cast<std::size_t>(i)] ^ flip_));
    }
    if constexpr (floating.contains(dtype)) {
      if (nans > 0) write_nans(to + (flip_ != 0 ? 0 : numbers * to_step), to_step);
      const auto zero = static_cast<K>(top_bit<K> ^ flip_);
      const K* const found = std::lower_bound(keys.get(), keys.get() + numbers, zero);
      if (found != keys.get() + numbers && *found == zero)
        write_zeros(first + (found - keys.get()) * to_step, to_step);
    }
  }

 private:
  static void sort_keys(K* keys, int64_t count, int parts) {
    if constexpr (sizeof(K) > 1) {
      if (is_for_vectors(sizeof(K), count, parts)) return vector_sort(keys, count);
    }
    const auto beside = std::make_unique_for_overwrite<K[]>(static_cast<std::size_t>(count));
    RadixSort<K>(keys, beside.get(), count, parts).run();
  }

  void write_nans(Stored* to, int64_t to_step) const {
    for (int64_t i = 0; i < size_; ++i) {
      if (!is_nan<dtype>(from_[i * step_])) continue;
      *to = from_[i * step_];
      to += to_step;
    }
  }
  /// With their signs.
  void write_zeros(Stored* to, int64_t to_step) const {
    for (int64_t i = 0; i < size_; ++i) {
      if (key_of<dtype>(from_[i * step_]) != top_bit<K>) continue;
      *to = from_[i * step_];
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
  static constexpr int64_t at_once = 64;

  template <class Width>
  void operator()(Width, const Stored* from, int64_t step, int64_t size, int64_t count, K flip,
                  std::vector<Entry>* best) const {
    best->clear();
    const auto room = static_cast<std::size_t>(count * 2 + at_once);
    best->reserve(room + at_once);
    K bound = std::numeric_limits<K>::max();
    bool is_bounded = false;
    std::array<K, at_once> keys;
    for (int64_t first = 0; first < size; first += at_once) {
      const int64_t last = std::min(first + at_once, size);
      keys.fill(std::numeric_limits<K>::max());
      read(from + first * step, step, last - first, flip, keys.data());
      if (is_bounded) {
        K least = std::numeric_limits<K>::max();
        for (const K key : keys) least = std::min(least, key);
        if (least >= bound) continue;
      }
      for (int64_t i = first; i < last; ++i) {
        const K key = keys[static_cast<std::size_t>(i - first)];
        if (!is_bounded || key < bound) best->push_back({key, static_cast<uint32_t>(i)});
      }
      if (best->size() < room) continue;
      keep(count, *best);
      bound = best->back().key;
      is_bounded = true;
    }
    keep(count, *best);
    std::sort(best->begin(), best->end(), is_before<K>);
  }

 private:
  static void read(const Stored* from, int64_t step, int64_t count, K flip, K* keys) {
    if (step == 1 && count == at_once) {
      for (int64_t i = 0; i < at_once; ++i) keys[i] = static_cast<K>(key_of<dtype>(from[i]) ^ flip);
    } else {
      for (int64_t i = 0; i < count; ++i)
        keys[i] = static_cast<K>(key_of<dtype>(from[i * step]) ^ flip);
    }
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
      const auto both = std::make_unique_for_overwrite<uint64_t[]>(static_cast<std::size_t>(size));
      for (int64_t i = 0; i < size; ++i) {
        const K key = static_cast<K>(key_of<dtype>(from[i * step]) ^ flip);
        both[static_cast<std::size_t>(i)] =
            static_cast<uint64_t>(key) << position_bits | static_cast<uint64_t>(i);
      }
      vector_sort(both.get(), size);
      for (int64_t i = 0; i < count; ++i)
        to[i * to_step] = static_cast<uint32_t>(both[static_cast<std::size_t>(i)]);
      return;
    }
  }
  const auto entries = std::make_unique_for_overwrite<Entry[]>(static_cast<std::size_t>(size));
  const auto beside = std::make_unique_for_overwrite<Entry[]>(static_cast<std::size_t>(size));
  for (int64_t i = 0; i < size; ++i) {
    entries[static_cast<std::size_t>(i)] = {static_cast<K>(key_of<dtype>(from[i * step]) ^ flip),
                                            static_cast<uint32_t>(i)};
  }
  RadixSort<Entry>(entries.get(), beside.get(), size, parts).run();
  for (int64_t i = 0; i < count; ++i) to[i * to_step] = entries[static_cast<std::size_t>(i)].at;
}

}  // namespace

void sort(const LibraryCall& call, const Launch& launch) {
  check_countable(call.operands[0].shape[call.axis]);
  const int64_t size = call.operands[0].shape[call.axis];
  with_ordered_type(call.operands[0].dtype, [&](auto dtype) {
    using Stored = typename Elements<dtype.value>::Stored;
    const auto* const x = static_cast<const Stored*>(launch.buffers[0]);
    auto* const out = static_cast<Stored*>(launch.buffers[1]);
    for_each_line(call, launch, [&](const Lines::Block& block, int64_t c, int parts) {
      SortedLine<dtype.value>(x + block.walks[0].at(0, c), block.walks[0].along, size,
                              call.is_descending)
          .write(out + block.walks[1].at(0, c), block.walks[1].along, parts);
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
    for_each_line(call, launch, [&](const Lines::Block& block, int64_t c, int parts) {
      order_line<dtype.value>(x + block.walks[0].at(0, c), block.walks[0].along, size,
                              call.is_descending, parts, out + block.walks[1].at(0, c),
                              block.walks[1].along, count);
    });
  });
}

}  // namespace nitinol::host
