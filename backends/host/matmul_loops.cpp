// The sum over k of each element is one chain, so bits depend on nothing; vectors run along
// columns. A panel of b, two vectors wide, is packed once and used for all rows, four at a time.

#include "backends/host/matmul_loops.h"

#include "backends/host/per_isa.h"
#include "backends/host/split.h"
#include "core/isa.h"
#include "core/word.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <type_traits>

namespace nitinol::host {
namespace {

template <class T, int bytes>
struct VectorOf {
  using Type [[gnu::vector_size(bytes)]] = T;
};

template <class T>
inline const T* element(const MatrixView& x, int64_t row, int64_t column) {
  return static_cast<const T*>(x.data) + row * x.row + column * x.column;
}

/// Rows [row, row + rows) of the panel that begins at `column`.
template <class T, int width, int rows>
inline void multiply_rows(const MatrixProduct& p, const T* panel, int64_t row, int64_t column,
                          int64_t columns) {
  using V = typename VectorOf<T, width>::Type;
  constexpr int lanes = width / static_cast<int>(sizeof(T));
  V sums[rows][2] = {};
  for (int64_t k = 0; k < p.k; ++k) {
    V b[2];
    std::memcpy(&b, panel + k * 2 * lanes, sizeof b);
#pragma GCC unroll 4
    for (int r = 0; r < rows; ++r) {
      const T a = *element<T>(p.a, row + r, k);
      sums[r][0] = sums[r][0] + a * b[0];
      sums[r][1] = sums[r][1] + a * b[1];
    }
  }
  for (int r = 0; r < rows; ++r) {
    T out[2 * lanes];
    std::memcpy(out, &sums[r], sizeof out);
    T* const to = static_cast<T*>(p.c.data) + (row + r) * p.c.row + column * p.c.column;
    for (int64_t j = 0; j < columns; ++j) to[j * p.c.column] = out[j];
  }
}

template <class T>
struct Panels {
  template <int width>
  void operator()(VectorWidth<width>, const MatrixProduct& p, int64_t first, int64_t last) const {
    constexpr int64_t wide = 2 * width / static_cast<int>(sizeof(T));
    const auto panel = std::make_unique<T[]>(static_cast<std::size_t>(wide * p.k));
    for (int64_t number = first; number < last; ++number) {
      const int64_t column = number * wide;
      const int64_t columns = std::min(wide, p.n - column);
      for (int64_t k = 0; k < p.k; ++k) {
        for (int64_t j = 0; j < columns; ++j) {
          panel[static_cast<std::size_t>(k * wide + j)] = *element<T>(p.b, k, column + j);
        }
      }
      int64_t row = 0;
      for (; row + 4 <= p.m; row += 4) {
        multiply_rows<T, width, 4>(p, panel.get(), row, column, columns);
      }
      for (; row < p.m; ++row) multiply_rows<T, width, 1>(p, panel.get(), row, column, columns);
    }
  }
};

int64_t vector_bytes(Isa isa) {
#if defined(__x86_64__)
  return isa == Isa::avx512 ? 64 : isa == Isa::avx2 ? 32 : 16;
#else
  static_cast<void>(isa);
  return 16;
#endif
}

template <class T>
void multiply_as(const MatrixProduct& p, int threads) {
  const auto run = PerIsa<Panels<T>, const MatrixProduct&, int64_t, int64_t>::at(current_isa());
  const int64_t wide = 2 * vector_bytes(current_isa()) / static_cast<int64_t>(sizeof(T));
  const int64_t work = std::max<int64_t>(p.m * p.k * wide, 1);
  split((p.n + wide - 1) / wide, std::max<int64_t>(65536 / work, 1), threads,
        [&](int64_t first, int64_t last) { run(p, first, last); });
}

}  // namespace

void multiply(DType dtype, const MatrixProduct& product, int threads) {
  if (dtype == f64) return multiply_as<double>(product, threads);
  if (dtype == f32) return multiply_as<float>(product, threads);
  // Signed products wrap to the same bits as unsigned ones.
  with_word(size_of(dtype), [&](auto word) { multiply_as<decltype(word)>(product, threads); });
}

}  // namespace nitinol::host
