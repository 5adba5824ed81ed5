// Vectors run across products: element (i, k) of some matrices is gathered side by side.

#include "backends/host/matmul_small.h"

#include "backends/host/convert.h"
#include "backends/host/per_isa.h"
#include "backends/host/split.h"
#include "core/scalar.h"
#include "core/word.h"

#include <algorithm>
#include <cstddef>

namespace nitinol::host {
namespace {

/// Products at a time, and elements of the three matrices of one, at most.
constexpr int64_t side_by_side = 32, most_elements = 192;

template <class T, int bytes>
struct VectorOfItems {
  using Type [[gnu::vector_size(bytes)]] = T;
};

/// c = a b of matrices whose elements are side_by_side values each, of one product after another.
template <class T>
struct MultiplyItems {
  template <int width>
  void operator()(VectorWidth<width>, const T* a, const T* b, T* c, int64_t m, int64_t n,
                  int64_t k) const {
    using V = typename VectorOfItems<T, width>::Type;
    constexpr auto vectors = side_by_side * static_cast<int64_t>(sizeof(T)) / width;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        V sums[vectors] = {};
        for (int64_t l = 0; l < k; ++l) {
          const auto* const x = reinterpret_cast<const V*>(a + (i * k + l) * side_by_side);
          const auto* const y = reinterpret_cast<const V*>(b + (l * n + j) * side_by_side);
#pragma GCC unroll 8
          for (int64_t v = 0; v < vectors; ++v) sums[v] = sums[v] + x[v] * y[v];
        }
        auto* const to = reinterpret_cast<V*>(c + (i * n + j) * side_by_side);
#pragma GCC unroll 8
        for (int64_t v = 0; v < vectors; ++v) to[v] = sums[v];
      }
    }
  }
};

template <class T>
void multiply_as(DType dtype, const MatrixProduct& first, const std::array<int64_t, 3>& steps,
                 int64_t count, int threads) {
  const auto multiply_items =
      PerIsa<MultiplyItems<T>, const T*, const T*, T*, int64_t, int64_t, int64_t>::at(
          current_isa());
  const Gather gather = gather_of(dtype);
  const Scatter scatter = scatter_of(dtype);
  const auto size = static_cast<int64_t>(size_of(dtype));
  const int64_t m = first.m, n = first.n, k = first.k;
  const auto at = [&](const MatrixView& x, int64_t step, int64_t item, int64_t row,
                      int64_t column) {
    return static_cast<char*>(const_cast<void*>(static_cast<const void*>(x.data))) +
           (item * step + row * x.row + column * x.column) * size;
  };
  const int64_t blocks = (count + side_by_side - 1) / side_by_side;
  const int64_t grain = 65536 / (side_by_side * (m * k + k * n + m * n)) + 1;
  split(blocks, grain, threads, [&](int64_t begin, int64_t end) {
    struct alignas(64) Items {
      std::array<T, most_elements * side_by_side> values;
      Items() {}  // NOLINT: filled below
    } items;
    T* const a = items.values.data();
    T* const b = a + m * k * side_by_side;
    T* const c = b + k * n * side_by_side;
    if (begin == blocks - 1) items.values.fill(T{});  // its last items are none
    for (int64_t block = begin; block < end; ++block) {
      const int64_t item = block * side_by_side;
      const int64_t used = std::min(side_by_side, count - item);
      const auto bring = [&](const MatrixView& x, int64_t step, int64_t rows, int64_t columns,
                             T* to) {
        for (int64_t row = 0; row < rows; ++row) {
          for (int64_t column = 0; column < columns; ++column, to += side_by_side)
            gather(at(x, step, item, row, column), step * size, to, used);
        }
      };
      bring(first.a, steps[0], m, k, a);
      bring(first.b, steps[1], k, n, b);
      multiply_items(a, b, c, m, n, k);
      for (int64_t row = 0; row < m; ++row) {
        for (int64_t column = 0; column < n; ++column)
          scatter(c + (row * n + column) * side_by_side, at(first.c, steps[2], item, row, column),
                  steps[2] * size, used);
      }
    }
  });
}

}  // namespace

bool are_many_small(int64_t m, int64_t n, int64_t k, int64_t count) {
  return count >= side_by_side / 2 && m * k + k * n + m * n <= most_elements;
}

void multiply_many(DType dtype, const MatrixProduct& first, const std::array<int64_t, 3>& steps,
                   int64_t count, int threads) {
  if (dtype == f64) return multiply_as<double>(dtype, first, steps, count, threads);
  if (is_floating(dtype)) return multiply_as<float>(dtype, first, steps, count, threads);
  // Signed products wrap to the same bits as unsigned ones.
  with_word(size_of(dtype),
            [&](auto word) { multiply_as<decltype(word)>(dtype, first, steps, count, threads); });
}

}  // namespace nitinol::host
