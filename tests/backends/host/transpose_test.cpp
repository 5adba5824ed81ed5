#include "backends/host/transpose.h"

#include "core/stream.h"
#include "nitinol.h"
#include "tests/on_threads.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstring>
#include <vector>

namespace nitinol::transpose_test {
namespace {

/// Bytes whose first begins a cache line.
class Lines {
 public:
  explicit Lines(std::size_t bytes) : memory_(bytes + 64, 255) {
    start_ = (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64;
  }
  [[nodiscard]] char* data() { return reinterpret_cast<char*>(memory_.data() + start_); }
  [[nodiscard]] std::size_t size() const { return memory_.size() - 64; }

 private:
  std::vector<uint8_t> memory_;
  std::size_t start_;
};

/// Rows of the result are `gap` elements longer than they need to be, and begin `start` after a
/// cache line's first.
void check_transposed(int64_t size, int64_t rows, int64_t columns, int64_t gap, int64_t start,
                      bool is_streamed) {
  CAPTURE(size, rows, columns, gap, start, is_streamed);
  Lines from(static_cast<std::size_t>(rows * columns * size));
  for (std::size_t i = 0; i < from.size(); ++i)
    from.data()[i] = static_cast<char>(i * 37 + i / 251);
  const int64_t to_step = (columns + gap) * size;
  Lines to(static_cast<std::size_t>(start * size + rows * to_step));
  Lines expected(to.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      std::memcpy(expected.data() + (start + j) * size + i * to_step,
                  from.data() + (i + j * rows) * size, static_cast<std::size_t>(size));
    }
  }
  host::transpose({.from = from.data(),
                   .from_step = rows * size,
                   .to = to.data() + start * size,
                   .to_step = to_step,
                   .rows = rows,
                   .columns = columns,
                   .is_streamed = is_streamed},
                  static_cast<std::size_t>(size));
  finish_streams();
  CHECK(std::memcmp(to.data(), expected.data(), to.size()) == 0);
}

}  // namespace

TEST_CASE("blocks are transposed, through the caches or around them, and nothing else", "[host]") {
  for (const bool is_streamed : {false, true}) {
    for (const int64_t size : {1, 2, 4, 8}) {
      for (const int64_t rows : {1, 7, 16, 64, 100}) {
        for (const int64_t columns : {3, 64, 128, 300, 528}) {
          check_transposed(size, rows, columns, 0, 0, is_streamed);
          check_transposed(size, rows, columns, 64 - columns % 64, 0, is_streamed);
          check_transposed(size, rows, columns, 64 - columns % 64, 1, is_streamed);
          check_transposed(size, rows, columns, 1, 5, is_streamed);
        }
      }
    }
  }
}

TEST_CASE("large images change their layout", "[host]") {
  const Tensor x = reshape(arange(12 * 64 * 3136, i32), {12, 64, 56, 56});  // 9.6 MB
  for (const int threads : {1, 3}) {
    const Threads some(threads);
    const Tensor last = copy(permute(x, {0, 2, 3, 1}));
    const Tensor place = slice(reshape(last, {-1}), 0, Range{1'000'000, 1'000'001});
    CHECK(place.item<int64_t>() ==
          4 * 200704 + (1'000'000 - 4 * 200704) % 64 * 3136 + (1'000'000 - 4 * 200704) / 64);
    CHECK(same_bits(copy(permute(last, {0, 3, 1, 2})), x));
    const Tensor positions = copy(permute(x.to(f64), {3, 0, 2, 1}));
    CHECK(same_bits(copy(permute(positions, {1, 3, 2, 0})), x.to(f64)));
  }
}

}  // namespace nitinol::transpose_test
