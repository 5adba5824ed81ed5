#include "backends/host/convert.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cstdint>
#include <vector>

namespace nitinol::convert_test {
namespace {

/// Bits of floats around each f16, and of every kind of NaN.
std::vector<uint32_t> floats() {
  std::vector<uint32_t> bits;
  for (uint32_t i = 0; i < 1U << 20; ++i) bits.push_back(i << 12 | (i * 2654435761U >> 20));
  return bits;
}

}  // namespace

TEST_CASE("rows of float16 have the bits of single numbers", "[host][convert]") {
  std::vector<uint16_t> halves(1 << 16);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  const std::vector<uint32_t> wide = floats();
  // An odd number, and from an odd address, so that vectors end anywhere.
  for (const std::size_t start : {0, 1, 5}) {
    const auto count = static_cast<int64_t>(halves.size() - start - 3);
    std::vector<uint32_t> to(halves.size());
    host::gather_of(f16)(reinterpret_cast<const char*>(halves.data() + start), 2, to.data(), count);
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto k = static_cast<std::size_t>(i);
      wrong += to[k] != std::bit_cast<uint32_t>(host::half_to_float(halves[k + start])) ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(to[static_cast<std::size_t>(count)] == 0);
  }
  for (const std::size_t start : {0, 1, 5}) {
    const auto count = static_cast<int64_t>(wide.size() - start - 3);
    std::vector<uint16_t> to(wide.size());
    host::scatter_of(f16)(wide.data() + start, reinterpret_cast<char*>(to.data()), 2, count);
    int64_t wrong = 0;
    for (int64_t i = 0; i < count; ++i) {
      const auto k = static_cast<std::size_t>(i);
      wrong += to[k] != host::float_to_half(std::bit_cast<float>(wide[k + start])) ? 1 : 0;
    }
    CHECK(wrong == 0);
    CHECK(to[static_cast<std::size_t>(count)] == 0);
  }
}

}  // namespace nitinol::convert_test
