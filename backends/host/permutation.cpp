// Buckets are drawn and counted by parts of the numbers, each of a thread; each bucket's place is
// that of the parts in their order. Buckets are shuffled by as many threads.
#include "backends/host/permutation.h"

#include "backends/host/array.h"
#include "backends/host/radix_sort.h"
#include "backends/host/split.h"
#include "core/isa.h"
#include "core/permutation.h"
#include "core/random_words.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace nitinol::host {
namespace {

using permutation::block;
static_assert(block == random_block);

/// The words of a stream, those of a block of counters at a time.
class Words {
 public:
  Words(int64_t key, int64_t counter) : counter_(counter) {
    std::iota(indices_.begin(), indices_.end(), 0);
    keys_.fill(key);
  }
  /// Of `size` counters from `first` on.
  const RandomWords& make(int64_t first, int64_t size) {
    const auto from = static_cast<uint64_t>(counter_) + static_cast<uint64_t>(first);
    counters_.fill(static_cast<int64_t>(from));
    fill_(indices_.data(), keys_.data(), counters_.data(), size, words_);
    return words_;
  }

 private:
  using Block = std::array<int64_t, block>;
  const int64_t counter_;
  const FillRandomWords fill_ = fill_random_words<4>(current_isa());
  Block indices_, keys_, counters_;
  RandomWords words_;
};

class Permutation {
 public:
  Permutation(int64_t key, int64_t counter, int64_t count, int threads)
      : key_(key), counter_(counter), count_(count), threads_(threads) {}

  void write(int64_t* to, int64_t step) {
    if (bits_ == 0) {
      std::iota(order_.get(), order_.get() + count_, 0);
      starts_ = {0, static_cast<uint32_t>(count_)};
    } else {
      const Array<uint16_t> drawn(count_ + draws);
      draw_buckets(drawn.get());
      place_buckets();
      put_in_buckets(drawn.get());
    }
    split(buckets(), 1, static_cast<int>(parts_),
          [&](int64_t first, int64_t last) { shuffle(first, last, to, step); });
  }

 private:
  static constexpr int64_t draws = 8 * block;    ///< of a block of counters: buckets
  static constexpr int64_t chances = 4 * block;  ///< places

  [[nodiscard]] int64_t buckets() const { return int64_t{1} << bits_; }
  [[nodiscard]] uint32_t* counts_of(int64_t part) {
    return counts_.data() + static_cast<std::size_t>(part * buckets());
  }

  /// Calls f(part, first, last) for each part, of whole blocks.
  template <class F>
  void for_each_part(const F& f) const {
    const int64_t blocks = (count_ + draws - 1) / draws;
    split(parts_, 1, threads_, [&](int64_t begin, int64_t end) {
      for (int64_t part = begin; part < end; ++part) {
        f(part, blocks * part / parts_ * draws,
          std::min(blocks * (part + 1) / parts_ * draws, count_));
      }
    });
  }

  /// The bucket of each number, and how many of each part have it. Writes to the end of a block.
  void draw_buckets(uint16_t* drawn) {
    for_each_part([&](int64_t part, int64_t first, int64_t last) {
      Words words(key_, counter_);
      uint32_t* const counts = counts_of(part);
      const int unused = 16 - bits_;
      for (int64_t from = first; from < last; from += draws) {
        uint16_t* to = drawn + from;
        for (const std::array<uint64_t, block>& word : words.make(from / 8, block).words) {
          for (const int shift : {0, 16}) {
            for (std::size_t i = 0; i < block; ++i)
              to[i] = static_cast<uint16_t>(static_cast<uint16_t>(word[i] >> shift) >> unused);
            to += block;
          }
        }
        for (int64_t i = from; i < std::min(from + draws, last); ++i) ++counts[drawn[i]];
      }
    });
  }

  /// Where buckets begin, and in counts_ where each part's numbers of a bucket do.
  void place_buckets() {
    starts_.clear();
    uint32_t before = 0;
    for (int64_t bucket = 0; bucket < buckets(); ++bucket) {
      starts_.push_back(before);
      for (int64_t part = 0; part < parts_; ++part)
        before += std::exchange(counts_of(part)[bucket], before);
    }
    starts_.push_back(before);
  }

  void put_in_buckets(const uint16_t* drawn) {
    for_each_part([&](int64_t part, int64_t first, int64_t last) {
      uint32_t* const places = counts_of(part);
      for (int64_t i = first; i < last; ++i)
        order_.get()[places[drawn[i]]++] = static_cast<uint32_t>(i);
    });
  }

  /// Writes buckets [first, last).
  void shuffle(int64_t first, int64_t last, int64_t* to, int64_t step) const {
    Words words(key_, counter_);
    std::array<uint32_t, chances> drawn;
    int64_t known = 0;  // the end of the places that `drawn` is for
    for (int64_t bucket = first; bucket < last; ++bucket) {
      const int64_t begin = starts_[static_cast<std::size_t>(bucket)];
      const int64_t end = starts_[static_cast<std::size_t>(bucket) + 1];
      int64_t* const own = to + begin * step;
      for (int64_t place = begin; place < end;) {
        const int64_t from = place / chances * chances;
        if (known <= place) {
          draw_places(words, from, drawn);
          known = from + chances;
        }
        for (const int64_t stop = std::min(known, end); place < stop; ++place) {
          const int64_t before = place - begin;
          const uint64_t chance = drawn[static_cast<std::size_t>(place - from)];
          const auto with = static_cast<int64_t>(chance * static_cast<uint64_t>(before + 1) >> 32);
          own[before * step] = own[with * step];
          own[with * step] = order_.get()[place];
        }
      }
    }
  }

  void draw_places(Words& words, int64_t from, std::array<uint32_t, chances>& drawn) const {
    const int64_t left = std::min(count_ - from, chances);
    const RandomWords& made =
        words.make(permutation::place_counter(count_) + from / 4, std::min(left, block));
    for (std::size_t i = 0; i < static_cast<std::size_t>(left); ++i)
      drawn[i] = static_cast<uint32_t>(made.words[i / block][i % block]);
  }

  const int64_t key_, counter_, count_;
  const int threads_;
  const int bits_ = permutation::bucket_bits(count_);
  const int64_t parts_ = count_ < 65536 ? 1 : threads_;
  const Array<uint32_t> order_ = Array<uint32_t>(count_);  ///< numbers by their buckets
  std::vector<uint32_t> counts_ =
      std::vector<uint32_t>(static_cast<std::size_t>(parts_ * buckets()));
  std::vector<uint32_t> starts_;  ///< where buckets begin, and the end
};

}  // namespace

void permute_numbers(const LibraryCall& call, const Launch& launch) {
  const OperandLayout &state = call.operands[0], &out = call.operands[1];
  check_countable(out.shape[0]);
  const auto* const words = static_cast<const int64_t*>(launch.buffers[0]);
  Permutation(words[0], words[state.strides[0]], out.shape[0], launch.threads)
      .write(static_cast<int64_t*>(launch.buffers[1]), out.strides[0]);
}

}  // namespace nitinol::host
