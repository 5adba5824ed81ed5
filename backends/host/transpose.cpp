// Rows of the result are columns of the source, so walking either side row by row touches a cache
// line per element on the other. And in matrices whose rows are a power of two apart, the lines of
// a column all compete for the same few places in the cache, so that a tile does not stay there.
//
// So a tile of one cache line by one cache line is copied, line by line, to a buffer, turned there,
// and written line by line: each line of memory is touched once.
//
// What is narrow on one side lies close together anyway (transpose_narrow.cpp).

#include "backends/host/transpose.h"

#include "backends/host/transpose_narrow.h"
#include "core/stream.h"
#include "core/word.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <type_traits>

namespace nitinol::host {
namespace {

constexpr int64_t cache_line = 64;

template <class T>
inline constexpr auto edge = cache_line / static_cast<int64_t>(sizeof(T));

template <class T>
struct alignas(cache_line) Tile {
  T at[edge<T>][edge<T>];
};

template <class T>
void turn(const Tile<T>& in, Tile<T>& out) {
  for (int64_t i = 0; i < edge<T>; ++i) {
    for (int64_t j = 0; j < edge<T>; ++j) out.at[i][j] = in.at[j][i];
  }
}

using Four [[gnu::vector_size(16), gnu::may_alias]] = uint32_t;

/// Four by four in registers.
void turn(const Tile<uint32_t>& in, Tile<uint32_t>& out) {
  const auto load = [&](int64_t row, int64_t column) {
    return *reinterpret_cast<const Four*>(&in.at[row][column]);
  };
  const auto store = [&](int64_t row, int64_t column, Four value) {
    *reinterpret_cast<Four*>(&out.at[row][column]) = value;
  };
  for (int64_t i = 0; i < 16; i += 4) {
    for (int64_t j = 0; j < 16; j += 4) {
      const Four a = load(j, i), b = load(j + 1, i), c = load(j + 2, i), d = load(j + 3, i);
      const Four low_ac = __builtin_shufflevector(a, c, 0, 4, 1, 5);
      const Four high_ac = __builtin_shufflevector(a, c, 2, 6, 3, 7);
      const Four low_bd = __builtin_shufflevector(b, d, 0, 4, 1, 5);
      const Four high_bd = __builtin_shufflevector(b, d, 2, 6, 3, 7);
      store(i, j, __builtin_shufflevector(low_ac, low_bd, 0, 4, 1, 5));
      store(i + 1, j, __builtin_shufflevector(low_ac, low_bd, 2, 6, 3, 7));
      store(i + 2, j, __builtin_shufflevector(high_ac, high_bd, 0, 4, 1, 5));
      store(i + 3, j, __builtin_shufflevector(high_ac, high_bd, 2, 6, 3, 7));
    }
  }
}

template <class T>
void transpose_edges(const TransposedBlock& block) {
  for (int64_t j = 0; j < block.columns; ++j) {
    const char* from = block.from + j * block.from_step;
    char* to = block.to + j * static_cast<int64_t>(sizeof(T));
    for (int64_t i = 0; i < block.rows; ++i) {
      std::memcpy(to + i * block.to_step, from + i * static_cast<int64_t>(sizeof(T)), sizeof(T));
    }
  }
}

template <class T>
void transpose_tile(const TransposedBlock& tile) {
  if (tile.rows < edge<T> || tile.columns < edge<T>) return transpose_edges<T>(tile);
  Tile<T> in, out;
  for (int64_t l = 0; l < edge<T>; ++l) {
    std::memcpy(&in.at[l], tile.from + l * tile.from_step, cache_line);
  }
  turn(in, out);
  for (int64_t l = 0; l < edge<T>; ++l) {
    if (tile.is_streamed)
      stream(tile.to + l * tile.to_step, &out.at[l], cache_line);
    else
      std::memcpy(tile.to + l * tile.to_step, &out.at[l], cache_line);
  }
}

/// The lines of the tile that is turned next.
template <class T>
void fetch_tile_after(const TransposedBlock& tile) {
  for (int64_t l = edge<T>; l < 2 * edge<T>; ++l)
    __builtin_prefetch(tile.from + l * tile.from_step);
}

/// The lines behind those of the tile, on both sides. Each lies in a page of its own, where nobody
/// sees that the next one will be wanted.
template <class T>
void fetch_lines_after(const TransposedBlock& tile) {
  for (int64_t l = 0; l < edge<T>; ++l) {
    __builtin_prefetch(tile.from + l * tile.from_step + cache_line);
    __builtin_prefetch(tile.to + l * tile.to_step + cache_line, 1);
  }
}

/// Columns of the source may lie a page apart each: so many are used again before the next.
constexpr int64_t band = 256;

template <class T>
void transpose_as(const TransposedBlock& block) {
  constexpr auto size = static_cast<int64_t>(sizeof(T));
  if constexpr (std::is_same_v<T, uint32_t>) {
    const int64_t width = std::min(block.rows, block.columns);
    const int64_t step = block.rows <= block.columns ? block.from_step : block.to_step;
    if (width < edge<T> || (width < 2 * edge<T> && std::abs(step) <= 4 * cache_line))
      return transpose_narrow(block);
  }
  const bool is_of_lines = reinterpret_cast<std::uintptr_t>(block.to) % cache_line == 0 &&
                           block.to_step % cache_line == 0;
  const bool is_streamed = block.is_streamed && is_of_lines;
  const bool is_fetched = block.is_streamed && block.rows < block.columns;
  for (int64_t first = 0; first < block.columns; first += band) {
    const int64_t last = std::min(first + band, block.columns);
    for (int64_t i = 0; i < block.rows; i += edge<T>) {
      for (int64_t j = first; j < last; j += edge<T>) {
        const TransposedBlock tile = {.from = block.from + i * size + j * block.from_step,
                                      .from_step = block.from_step,
                                      .to = block.to + i * block.to_step + j * size,
                                      .to_step = block.to_step,
                                      .rows = std::min(edge<T>, block.rows - i),
                                      .columns = std::min(edge<T>, last - j),
                                      .is_streamed = is_streamed};
        if (is_fetched && j + edge<T> < last) fetch_tile_after<T>(tile);
        if (!block.is_streamed) fetch_lines_after<T>(tile);
        transpose_tile<T>(tile);
      }
    }
  }
}

}  // namespace

void transpose(const TransposedBlock& block, std::size_t size) {
  with_word(size, [&](auto word) { transpose_as<decltype(word)>(block); });
}

}  // namespace nitinol::host
