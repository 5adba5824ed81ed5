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

TEST_CASE("rows of 16-bit numbers have the bits of single ones", "[host][convert]") {
  const bool is_half = GENERATE(true, false);
  const DType dtype = is_half ? f16 : bf16;
  const auto widened = is_half ? host::half_to_float : host::bfloat_to_float;
  const auto narrowed = is_half ? host::float_to_half : host::float_to_bfloat;
  std::vector<uint16_t> narrow(1 << 16);
  for (std::size_t i = 0; i < narrow.size(); ++i) narrow[i] = static_cast<uint16_t>(i);
  const std::vector<uint32_t> wide = floats();
  // Odd numbers, and from odd addresses, so that vectors end anywhere.
  const auto check = [&](std::size_t start, std::size_t narrow_count, std::size_t wide_count) {
    std::vector<uint32_t> floats_of(narrow_count + 1);
    host::gather_of(dtype)(reinterpret_cast<const char*>(narrow.data() + start), 2,
                           floats_of.data(), static_cast<int64_t>(narrow_count));
    int64_t wrong = 0;
    for (std::size_t i = 0; i < narrow_count; ++i)
      wrong += floats_of[i] != std::bit_cast<uint32_t>(widened(narrow[start + i])) ? 1 : 0;
    std::vector<uint16_t> rounded(wide_count + 1);
    host::scatter_of(dtype)(wide.data() + start, reinterpret_cast<char*>(rounded.data()), 2,
                            static_cast<int64_t>(wide_count));
    for (std::size_t i = 0; i < wide_count; ++i)
      wrong += rounded[i] != narrowed(std::bit_cast<float>(wide[start + i])) ? 1 : 0;
    CAPTURE(name_of(dtype), start, narrow_count, wide_count);
    CHECK(wrong == 0);
    CHECK(floats_of.back() == 0);
    CHECK(rounded.back() == 0);
  };
  for (const std::size_t start : {0U, 1U, 5U})
    check(start, narrow.size() - start - 3, wide.size() - start - 3);
  for (std::size_t count = 0; count < 40; ++count)  // from numbers to NaN
    check(0x7c00 - 20, count, count);
}

}  // namespace nitinol::convert_test
