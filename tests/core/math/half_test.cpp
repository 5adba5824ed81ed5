#include "core/math/half.h"

#include "tests/core/math/lanes.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

using namespace nitinol;
using nitinol::test::count_differences;
using nitinol::test::run_loop;

namespace {

const auto widen_half = [](auto x) { return half_to_float(x); };
const auto narrow_half = [](auto x) { return float_to_half(x); };
const auto widen_bfloat = [](auto x) { return bfloat_to_float(x); };
const auto narrow_bfloat = [](auto x) { return float_to_bfloat(x); };

std::vector<uint16_t> all_u16() {
  std::vector<uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
  return all;
}

/// The definition of f16: sign, 5 bits of exponent, 10 of fraction.
float half_by_definition(uint16_t half) {
  const int exponent = half >> 10 & 31, fraction = half & 1023;
  const float sign = half >> 15 != 0 ? -1.0F : 1.0F;
  if (exponent == 31) return fraction != 0 ? NAN : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  return sign * std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
}

float bfloat_by_definition(uint16_t bfloat) {
  return std::bit_cast<float>(uint32_t{bfloat} << 16);
}

}  // namespace

TEST_CASE("every f16 widens to its value and narrows back", "[core][math]") {
  const std::vector<uint16_t> all = all_u16();
  const std::vector<float> wide = run_loop<float>(host_isa(), widen_half, all);
  const std::vector<uint16_t> back = run_loop<uint16_t>(host_isa(), narrow_half, wide);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (!test::same(wide[i], half_by_definition(all[i]))) ++wrong;
    const bool is_nan = (all[i] & 0x7fff) > 0x7c00;
    if (is_nan ? (back[i] & 0x7fff) <= 0x7c00 : back[i] != all[i]) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(count_differences<float>(widen_half, all) == 0);
}

TEST_CASE("f32 rounds to the nearest f16, ties to even", "[core][math]") {
  // Between neighbours a and b: the middle goes to the even one, a little off it to the nearer.
  std::vector<float> x;
  std::vector<uint16_t> want;
  for (int half = 0; half < 0x7c00; ++half) {
    const auto a = static_cast<uint16_t>(half), b = static_cast<uint16_t>(half + 1);
    const float low = half_by_definition(a);
    const float high = b == 0x7c00 ? 65536.0F : half_by_definition(b);
    const float middle = low + (high - low) / 2;
    x.insert(x.end(), {middle, std::nextafter(middle, 0.0F), std::nextafter(middle, 1e6F)});
    want.insert(want.end(), {half % 2 == 0 ? a : b, a, b});
  }
  CHECK(run_loop<uint16_t>(host_isa(), narrow_half, x) == want);
  CHECK(count_differences<uint16_t>(narrow_half, test::samples<float>(20000, 1)) == 0);
}

TEST_CASE("bf16 is the upper half of an f32, rounded to even", "[core][math]") {
  const std::vector<uint16_t> all = all_u16();
  const std::vector<float> wide = run_loop<float>(host_isa(), widen_bfloat, all);
  const std::vector<uint16_t> back = run_loop<uint16_t>(host_isa(), narrow_bfloat, wide);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool is_nan = (all[i] & 0x7fff) > 0x7f80;
    if (is_nan ? (back[i] & 0x7fff) <= 0x7f80 : back[i] != all[i]) ++wrong;
  }
  CHECK(wrong == 0);
  const auto bits = [](uint32_t pattern) { return std::bit_cast<float>(pattern); };
  const std::vector<float> x = {bits(0x3f808000), bits(0x3f818000), bits(0x3f808001),
                                bits(0x7f7fffff), bits(0x7f800001), bits(0x00008001)};
  const std::vector<uint16_t> want = {0x3f80, 0x3f82, 0x3f81, 0x7f80, 0x7fc0, 0x0001};
  CHECK(run_loop<uint16_t>(host_isa(), narrow_bfloat, x) == want);
  CHECK(count_differences<uint16_t>(narrow_bfloat, test::samples<float>(20000, 1)) == 0);
}

TEST_CASE("rounding to 16 bits is storing and loading", "[core][math]") {
  const auto round_half = [](auto x) { return rounded_to_half(x); };
  const auto round_bfloat = [](auto x) { return rounded_to_bfloat(x); };
  std::vector<float> x = test::samples<float>(20000, 2);
  for (const uint32_t nan : {0x7fc00000U, 0xffc00000U, 0x7f800001U, 0xff800001U, 0xffffffffU})
    x.push_back(std::bit_cast<float>(nan));
  for (const uint16_t half : all_u16()) {  // around each value, and each middle between two
    const float wide = bfloat_by_definition(half);
    for (const float value : {half_by_definition(half), wide}) {
      const float middle = value + (std::nextafter(value, INFINITY) - value) * 0x1p15F;
      x.insert(x.end(), {value, middle, std::nextafter(middle, 0.0F), std::nextafter(value, 0.0F)});
    }
  }
  const auto rounded = run_loop<float>(host_isa(), round_half, x);
  const auto stored =
      run_loop<float>(host_isa(), widen_half, run_loop<uint16_t>(host_isa(), narrow_half, x));
  const auto rounded_b = run_loop<float>(host_isa(), round_bfloat, x);
  const auto stored_b =
      run_loop<float>(host_isa(), widen_bfloat, run_loop<uint16_t>(host_isa(), narrow_bfloat, x));
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    wrong += !test::same(rounded[i], stored[i]) + !test::same(rounded_b[i], stored_b[i]);
    // Memory shows a NaN's sign, though no op does.
    wrong += std::signbit(rounded[i]) != std::signbit(stored[i]);
    wrong += std::signbit(rounded_b[i]) != std::signbit(stored_b[i]);
  }
  CHECK(wrong == 0);
  CHECK(count_differences<float>(round_half, test::samples<float>(20000, 1)) == 0);
  CHECK(count_differences<float>(round_bfloat, test::samples<float>(20000, 1)) == 0);
}
