#include "dist/add_rows.h"

#include <algorithm>
#include <bit>

namespace nitinol::dist {
namespace {

template <class T>
void add(std::span<const std::byte* const> rows, std::size_t bytes, bool is_mean, std::byte* to) {
  // A piece of all rows after the other, so that the sums stay in the first cache.
  constexpr std::size_t piece = 4096;
  const std::size_t count = bytes / sizeof(T);
  const T number = static_cast<T>(rows.size());
  T* const sums = reinterpret_cast<T*>(to);
  const auto row = [&](std::size_t i) { return reinterpret_cast<const T*>(rows[i]); };
  for (std::size_t begin = 0; begin < count; begin += piece) {
    const std::size_t end = std::min(count, begin + piece);
    const T *const first = row(0), *const second = row(1);
    for (std::size_t j = begin; j < end; ++j) sums[j] = first[j] + second[j];
    for (std::size_t i = 2; i < rows.size(); ++i) {
      const T* const next = row(i);
      for (std::size_t j = begin; j < end; ++j) sums[j] += next[j];
    }
    if (!is_mean) continue;
    if (std::has_single_bit(rows.size())) {  // the same bits, sooner
      for (std::size_t j = begin; j < end; ++j) sums[j] *= T{1} / number;
    } else {
      for (std::size_t j = begin; j < end; ++j) sums[j] /= number;
    }
  }
}

}  // namespace

void add_rows(DType dtype, std::span<const std::byte* const> rows, std::size_t bytes, bool is_mean,
              std::byte* to) {
  if (dtype == f32)
    add<float>(rows, bytes, is_mean, to);
  else
    add<double>(rows, bytes, is_mean, to);
}

}  // namespace nitinol::dist
