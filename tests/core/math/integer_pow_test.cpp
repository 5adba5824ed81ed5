#include "core/math/integer_pow.h"

#include "tests/core/math/lanes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <vector>

using namespace nitinol;
using nitinol::test::count_differences;
using nitinol::test::run_loop;
using nitinol::test::samples;

namespace {

const auto power = [](auto a, auto b) { return integer_pow(a, b); };

/// One product after the other, of 64 bits, of which T keeps the lowest.
template <class T>
T slow_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>) {
    if (exponent < 0 && base == -1) return exponent % 2 == 0 ? 1 : -1;
    if (exponent < 0) return base == 1 ? 1 : 0;
  }
  uint64_t result = 1;
  for (T k = 0; k < exponent; ++k) result *= static_cast<uint64_t>(base);
  return static_cast<T>(result);
}

}  // namespace

TEST_CASE("integer powers wrap; negative exponents give 0 but for 1 and -1", "[core][math]") {
  const std::vector<int32_t> a = {3, 2, 2, -1, -1, 1, 5, 0, 0, -3};
  const std::vector<int32_t> b = {4, 31, 32, 7, -2, -9, -1, 0, -1, 3};
  const std::vector<int32_t> want = {81, std::numeric_limits<int32_t>::min(), 0, -1, 1, 1, 0, 1, 0,
                                     -27};
  CHECK(run_loop<int32_t>(host_isa(), power, a, b) == want);
}

TEMPLATE_TEST_CASE("integer powers are products, whatever the exponent's size", "[core][math]",
                   uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  using T = TestType;
  CHECK(count_differences<T>(power, samples<T>(2000, 1), samples<T>(2000, 2)) == 0);
  // Blocks in which no exponent is large, one is, and all are.
  for (const int largest : {3, 7, 8, 16, 40, 64, 100}) {
    std::vector<T> a = samples<T>(700, 3), b(a.size());
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (i % 3 == 0) a[i] = static_cast<T>(static_cast<int>(i % 7) - 3);
      b[i] = static_cast<T>(i % static_cast<std::size_t>(largest));
      if (std::is_signed_v<T> && largest == 40 && i > 350) b[i] = static_cast<T>(-b[i]);
    }
    b[300] = static_cast<T>(largest);
    std::vector<T> want(a.size());
    std::transform(a.begin(), a.end(), b.begin(), want.begin(), slow_power<T>);
    CHECK(run_loop<T>(host_isa(), power, a, b) == want);
    CHECK(count_differences<T>(power, a, b) == 0);
  }
}
