// Bisection without branches, of several elements at a time: each step of one waits for memory, and
// those of the others go on meanwhile.
#include "backends/host/search.h"

#include "backends/host/keys.h"
#include "backends/host/rows.h"
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

}  // namespace

void search(const LibraryCall& call, const Launch& launch) {
  const OperandLayout &line = call.operands[0], &x = call.operands[1], &out = call.operands[2];
  const int64_t count = line.shape[0];
  with_ordered_type(line.dtype, [&](auto dtype) {
    using Stored = typename Elements<dtype.value>::Stored;
    using K = Key<dtype.value>;
    const auto* const sorted = static_cast<const Stored*>(launch.buffers[0]);
    const Rows from(x, launch.buffers[1], x.shape.size());
    const Rows to(out, launch.buffers[2], out.shape.size());
    const auto keys = std::make_unique_for_overwrite<K[]>(static_cast<std::size_t>(count));
    for (int64_t i = 0; i < count; ++i)
      keys[static_cast<std::size_t>(i)] = key_of<dtype.value>(sorted[i * line.strides[0]]);
    split(element_count(x.shape), 1024, launch.threads, [&](int64_t first, int64_t last) {
      std::array<K, at_once> sought = {};
      std::array<int64_t, at_once> found;
      for (int64_t i = first; i < last; i += at_once) {
        const int64_t now = std::min(at_once, last - i);
        for (int64_t j = 0; j < now; ++j)
          sought[static_cast<std::size_t>(j)] =
              key_of<dtype.value>(*reinterpret_cast<const Stored*>(from.row(i + j)));
        if (call.is_right)
          bisect<K, true>(keys.get(), count, sought, found);
        else
          bisect<K, false>(keys.get(), count, sought, found);
        for (int64_t j = 0; j < now; ++j) {
          *reinterpret_cast<int64_t*>(to.row(i + j)) = found[static_cast<std::size_t>(j)];
        }
      }
    });
  });
}

}  // namespace nitinol::host
