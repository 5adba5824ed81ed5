// Bisection without branches, of several elements at a time: each step of one waits for memory, and
// those of the others go on meanwhile.
#include "backends/host/search.h"

#include "backends/host/indices.h"
#include "backends/host/keys.h"
#include "backends/host/split.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

namespace nitinol::host {
namespace {

constexpr int64_t at_once = 16;

/// How many of keys[0, count) come before each of the sought.
template <class K, bool is_right>
void bisect(const K* keys, int64_t count, const std::array<K, at_once>& sought,
            std::array<int64_t, at_once>& found) {
  found.fill(0);
  if (count == 0) return;
  const auto is_before = [&](K key, K wanted) { return is_right ? key <= wanted : key < wanted; };
  int64_t left = count;
  for (; left > 1; left -= left / 2) {
    const int64_t half = left / 2;
    for (std::size_t i = 0; i < at_once; ++i)
      found[i] += is_before(keys[found[i] + half - 1], sought[i]) ? half : 0;
  }
  for (std::size_t i = 0; i < at_once; ++i)
    found[i] += is_before(keys[found[i]], sought[i]) ? 1 : 0;
}

/// Where elements lie, in bytes.
class ElementPlaces {
 public:
  explicit ElementPlaces(const OperandLayout& layout)
      : layout_(layout), is_row_major_(is_contiguous(layout.shape, layout.strides)) {}
  int64_t operator[](int64_t i) const {
    if (is_row_major_) return i * static_cast<int64_t>(size_of(layout_.dtype));
    return byte_offset(i, layout_.shape, layout_);
  }

 private:
  const OperandLayout& layout_;
  const bool is_row_major_;
};

}  // namespace

void search(const LibraryCall& call, const Launch& launch) {
  const OperandLayout &line = call.operands[0], &x = call.operands[1], &out = call.operands[2];
  const int64_t count = line.shape[0];
  with_ordered_type(line.dtype, [&](auto dtype) {
    using Stored = typename Elements<dtype.value>::Stored;
    using K = Key<dtype.value>;
    const auto* const sorted = static_cast<const Stored*>(launch.buffers[0]);
    const auto* const from = static_cast<const char*>(launch.buffers[1]);
    auto* const to = static_cast<char*>(launch.buffers[2]);
    const auto keys = std::make_unique_for_overwrite<K[]>(static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      keys[static_cast<std::size_t>(i)] = key_of<dtype.value>(sorted[i * line.strides[0]]);
    const ElementPlaces x_places(x), out_places(out);
    split(element_count(x.shape), 1024, launch.threads, [&](int64_t first, int64_t last) {
      std::array<K, at_once> sought = {};
      std::array<int64_t, at_once> found;
      for (int64_t i = first; i < last; i += at_once) {
        const int64_t now = std::min(at_once, last - i);
        for (int64_t j = 0; j < now; ++j)
          sought[static_cast<std::size_t>(j)] =
              key_of<dtype.value>(*reinterpret_cast<const Stored*>(from + x_places[i + j]));
        if (call.is_right)
          bisect<K, true>(keys.get(), count, sought, found);
        else
          bisect<K, false>(keys.get(), count, sought, found);
        for (int64_t j = 0; j < now; ++j) {
          *reinterpret_cast<int64_t*>(to + out_places[i + j]) = found[static_cast<std::size_t>(j)];
        }
      }
    });
  });
}

}  // namespace nitinol::host
