// Four by four in each 16 bytes of a vector. Example with vectors of 32 bytes, and rows of few
// elements that become columns: a holds the first four elements of rows 0 and 4, b those of rows 1
// and 5, and so on. Turned, a holds element 0 of rows 0 to 7, b element 1 ...

#include "backends/host/transpose_narrow.h"

#include "backends/host/per_isa.h"
#include "backends/host/vectors.h"
#include "core/isa.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace nitinol::host {
namespace {

constexpr int64_t element_size = 4;  ///< of an element

template <int bytes>
using Words = VectorOf<uint32_t, bytes>;
using Two [[gnu::vector_size(16)]] = uint64_t;

template <int bytes>
inline Words<bytes> load(const char* from) {
  return Words<bytes>::load(reinterpret_cast<const uint32_t*>(from));
}
template <int bytes>
inline void store(char* to, const Words<bytes>& value) {
  value.store(reinterpret_cast<uint32_t*>(to));
}

/// The first n of four elements. Not by way of memory, which the next instruction would wait for.
template <int n>
inline Words<16> load_some(const char* from) {
  if constexpr (n == 4) return load<16>(from);
  uint64_t low = 0;
  uint32_t third = 0;
  std::memcpy(&low, from, std::min(n, 2) * element_size);
  if constexpr (n == 3) std::memcpy(&third, from + 2 * element_size, element_size);
  return {(Vector<uint32_t, 16>)Two{low, third}};
}
template <int n>
inline void store_some(char* to, const Words<16>& value) {
  if constexpr (n == 4) return store<16>(to, value);
  const uint64_t low = ((Two)value.value)[0];
  const uint32_t third = value.value[2];
  std::memcpy(to, &low, std::min(n, 2) * element_size);
  if constexpr (n == 3) std::memcpy(to + 2 * element_size, &third, element_size);
}

/// n elements from each of the lines 0, 4, 8 ..., which are `step` bytes apart.
template <int bytes, int n>
inline Words<bytes> load_lines(const char* from, int64_t step) {
  if constexpr (bytes == 16) {
    return load_some<n>(from);
  } else {
    const auto low = load_lines<bytes / 2, n>(from, step);
    const auto high = load_lines<bytes / 2, n>(from + bytes / 8 * step, step);
    const auto both = [&]<int... i>(std::integer_sequence<int, i...>) {
      return Words<bytes>{__builtin_shufflevector(low.value, high.value, i...)};
    };
    return both(std::make_integer_sequence<int, bytes / 4>{});
  }
}
template <int bytes, int n>
inline void store_lines(char* to, int64_t step, const Words<bytes>& value) {
  if constexpr (bytes == 16) {
    store_some<n>(to, value);
  } else {
    const auto halves = std::bit_cast<std::array<Words<bytes / 2>, 2>>(value);
    store_lines<bytes / 2, n>(to, step, halves[0]);
    store_lines<bytes / 2, n>(to + bytes / 8 * step, step, halves[1]);
  }
}

/// The lower (first = 0) or upper (2) halves of each 16 bytes of a and b, element by element.
template <int bytes, int first>
inline Words<bytes> interleave(const Words<bytes>& a, const Words<bytes>& b) {
  const auto shuffled = [&]<int... i>(std::integer_sequence<int, i...>) {
    return Words<bytes>{__builtin_shufflevector(
        a.value, b.value, (i / 4 * 4 + first + i % 4 / 2 + i % 2 * (bytes / 4))...)};
  };
  return shuffled(std::make_integer_sequence<int, bytes / 4>{});
}

template <int bytes>
struct Quad {
  Words<bytes> a, b, c, d;
};

template <int bytes>
inline Quad<bytes> turn(const Quad<bytes>& in) {
  const auto low_ac = interleave<bytes, 0>(in.a, in.c), high_ac = interleave<bytes, 2>(in.a, in.c);
  const auto low_bd = interleave<bytes, 0>(in.b, in.d), high_bd = interleave<bytes, 2>(in.b, in.d);
  return {interleave<bytes, 0>(low_ac, low_bd), interleave<bytes, 2>(low_ac, low_bd),
          interleave<bytes, 0>(high_ac, high_bd), interleave<bytes, 2>(high_ac, high_bd)};
}

/// Calls visit(std::integral_constant<int, min(left, 4)>).
template <class Visit>
inline void with_count(int64_t left, Visit visit) {
  if (left >= 4) return visit(std::integral_constant<int, 4>{});
  if (left == 3) return visit(std::integral_constant<int, 3>{});
  if (left == 2) return visit(std::integral_constant<int, 2>{});
  visit(std::integral_constant<int, 1>{});
}

/// A vector of columns from j on, of n rows from i on. Of each column `loaded` elements are loaded.
template <int bytes, int n, int loaded = n>
inline void turn_tile(const TransposedBlock& block, int64_t i, int64_t j) {
  const char* const from = block.from + i * element_size + j * block.from_step;
  const int64_t step = block.from_step;
  const auto out = turn<bytes>({load_lines<bytes, loaded>(from, step),
                                load_lines<bytes, loaded>(from + step, step),
                                load_lines<bytes, loaded>(from + 2 * step, step),
                                load_lines<bytes, loaded>(from + 3 * step, step)});
  char* const to = block.to + i * block.to_step + j * element_size;
  store<bytes>(to, out.a);
  if constexpr (n > 1) store<bytes>(to + block.to_step, out.b);
  if constexpr (n > 2) store<bytes>(to + 2 * block.to_step, out.c);
  if constexpr (n > 3) store<bytes>(to + 3 * block.to_step, out.d);
}

/// Columns [j, all whole vectors) of n rows from row i on; returns where they end.
template <int bytes, int n, int loaded = n>
inline int64_t turn_rows(const TransposedBlock& block, int64_t i, int64_t j) {
  constexpr int64_t count = bytes / element_size;
  for (; j + count <= block.columns; j += count) turn_tile<bytes, n, loaded>(block, i, j);
  return j;
}

/// Rows [i, all whole vectors) of n columns from column j on; returns where they end.
template <int bytes, int n>
inline int64_t turn_columns(const TransposedBlock& block, int64_t i, int64_t j) {
  constexpr int64_t count = bytes / element_size;
  for (; i + count <= block.rows; i += count) {
    const char* const from = block.from + i * element_size + j * block.from_step;
    const auto column = [&](int k) {
      return k < n ? load<bytes>(from + k * block.from_step) : Words<bytes>{};
    };
    const auto out = turn<bytes>({column(0), column(1), column(2), column(3)});
    char* const to = block.to + i * block.to_step + j * element_size;
    store_lines<bytes, n>(to, block.to_step, out.a);
    store_lines<bytes, n>(to + block.to_step, block.to_step, out.b);
    store_lines<bytes, n>(to + 2 * block.to_step, block.to_step, out.c);
    store_lines<bytes, n>(to + 3 * block.to_step, block.to_step, out.d);
  }
  return i;
}

inline void copy_elements(const TransposedBlock& block, int64_t first_row, int64_t first_column) {
  for (int64_t i = first_row; i < block.rows; ++i) {
    for (int64_t j = first_column; j < block.columns; ++j)
      std::memcpy(block.to + i * block.to_step + j * element_size,
                  block.from + i * element_size + j * block.from_step, element_size);
  }
}

/// Whether the block's columns follow each other in memory.
inline bool is_dense(const TransposedBlock& block) {
  return block.from_step == block.rows * element_size;
}

struct Narrow {
  template <int width>
  void operator()(VectorWidth<width>, const TransposedBlock& given) const {
    const TransposedBlock block = given;        // here, no store can change it
    constexpr int bytes = std::min(width, 32);  // there are half as many units for longer shuffles
    if (block.rows <= block.columns) {
      for (int64_t i = 0; i < block.rows; i += 4) {
        with_count(block.rows - i, [&](auto n) {
          int64_t j = 0;
          if (is_dense(block) && block.rows >= 4 - n) {
            // What is loaded beyond a column's end is the next one's.
            TransposedBlock but_one = block;
            --but_one.columns;
            j = turn_rows<bytes, n, 4>(but_one, i, 0);
          }
          turn_rows<16, n>(block, i, turn_rows<bytes, n>(block, i, j));
        });
      }
      return copy_elements(block, 0, block.columns / 4 * 4);
    }
    int64_t j = 0;
    for (constexpr int64_t count = bytes / element_size; j + count <= block.columns; j += count) {
      for (int64_t i = 0; i + 4 <= block.rows; i += 4) turn_tile<bytes, 4>(block, i, j);
    }
    for (; j < block.columns; j += 4) {
      with_count(block.columns - j, [&](auto n) {
        turn_columns<16, n>(block, turn_columns<bytes, n>(block, 0, j), j);
      });
    }
    copy_elements(block, block.rows / 4 * 4, 0);
  }
};

}  // namespace

void transpose_narrow(const TransposedBlock& block) {
  PerIsa<Narrow, const TransposedBlock&>::at(current_isa())(block);
}

}  // namespace nitinol::host
