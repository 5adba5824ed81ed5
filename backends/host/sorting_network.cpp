// Batcher's odd-even mergesort (Knuth, The Art of Computer Programming, volume 3, 5.2.2, algorithm
// M), which sorts any number of keys.
#include "backends/host/sorting_network.h"

#include "backends/host/per_isa.h"

#include <algorithm>

namespace nitinol::host {
namespace {

/// Calls exchange(i, j) for i < j of each pair that the network compares.
template <class Exchange>
inline void for_each_pair(int64_t size, const Exchange& exchange) {
  int parts_bit = 1;
  for (int64_t part = 1; part < size; part *= 2, ++parts_bit) {
    for (int64_t apart = part; apart > 0; apart /= 2) {
      for (int64_t first = apart % part; first + apart < size; first += 2 * apart) {
        const int64_t end = std::min(first + apart, size - apart);
        for (int64_t i = first; i < end; ++i) {
          if (i >> parts_bit == (i + apart) >> parts_bit) exchange(i, i + apart);
        }
      }
    }
  }
}

template <class K>
struct Sort {
  template <class Width>
  void operator()(Width, K* keys, int64_t size) const {
    for_each_pair(size, [&](int64_t i, int64_t j) {
      K* const __restrict upper = keys + i * lines_side_by_side;
      K* const __restrict lower = keys + j * lines_side_by_side;
      for (int64_t line = 0; line < lines_side_by_side; ++line) {
        const K a = upper[line], b = lower[line];
        upper[line] = a < b ? a : b;
        lower[line] = a < b ? b : a;
      }
    });
  }
};

template <class K>
struct SortPositions {
  template <class Width>
  void operator()(Width, K* keys, K* positions, int64_t size) const {
    for_each_pair(size, [&](int64_t i, int64_t j) {
      K* const __restrict upper = keys + i * lines_side_by_side;
      K* const __restrict lower = keys + j * lines_side_by_side;
      K* const __restrict upper_at = positions + i * lines_side_by_side;
      K* const __restrict lower_at = positions + j * lines_side_by_side;
      for (int64_t line = 0; line < lines_side_by_side; ++line) {
        const K a = upper[line], b = lower[line];
        const K a_at = upper_at[line], b_at = lower_at[line];
        // All ones or none, and no branch.
        const auto moves = static_cast<K>(-static_cast<K>((a > b) | ((a == b) & (a_at > b_at))));
        const auto change = static_cast<K>((a ^ b) & moves);
        const auto change_at = static_cast<K>((a_at ^ b_at) & moves);
        upper[line] = a ^ change;
        lower[line] = b ^ change;
        upper_at[line] = a_at ^ change_at;
        lower_at[line] = b_at ^ change_at;
      }
    });
  }
};

}  // namespace

template <class K>
void network_sort(K* keys, int64_t size) {
  PerIsa<Sort<K>, K*, int64_t>::at(current_isa())(keys, size);
}

template <class K>
void network_sort(K* keys, K* positions, int64_t size) {
  PerIsa<SortPositions<K>, K*, K*, int64_t>::at(current_isa())(keys, positions, size);
}

template void network_sort(uint8_t* keys, int64_t size);
template void network_sort(uint16_t* keys, int64_t size);
template void network_sort(uint32_t* keys, int64_t size);
template void network_sort(uint64_t* keys, int64_t size);
template void network_sort(uint32_t* keys, uint32_t* positions, int64_t size);
template void network_sort(uint64_t* keys, uint64_t* positions, int64_t size);

}  // namespace nitinol::host
