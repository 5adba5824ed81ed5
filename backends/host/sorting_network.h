// Short lines sorted side by side: by a network, which compares the same places whatever is in
// them, so that vectors run across lines.
#pragma once

#include <cstdint>

namespace nitinol::host {

/// Lines at a time, and keys of each at most: beyond, sorting one line by vectors is faster.
inline constexpr int64_t lines_side_by_side = 32, longest_networked = 64;

/// Sorts each column of keys[size][lines_side_by_side], the smallest first. For unsigned integers
/// of 8 to 64 bits.
template <class K>
void network_sort(K* keys, int64_t size);

/// The same, and `positions` moves along: what was where. Equal keys keep their order. For 32 and
/// 64 bits.
template <class K>
void network_sort(K* keys, K* positions, int64_t size);

}  // namespace nitinol::host
