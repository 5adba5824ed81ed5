#include "core/math/divide.h"

#include "tests/core/math/lanes.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace nitinol;
using nitinol::test::count_differences;
using nitinol::test::run_loop;
using nitinol::test::samples;

namespace {

const auto quotient = [](auto a, auto b) { return floor_divide(a, b); };
const auto rest = [](auto a, auto b) { return remainder(a, b); };

template <class T>
T python_remainder(T a, T b) {
  const T r = std::fmod(a, b);
  if (r == 0) return std::copysign(r, b);
  return (r < 0) != (b < 0) ? r + b : r;
}

}  // namespace

TEMPLATE_TEST_CASE("float remainder has Python's sign and value", "[core][math]", float, double) {
  std::vector<TestType> a = samples<TestType>(20000, 1), b = samples<TestType>(20000, 2);
  std::reverse(b.begin(), b.end());
  const std::vector<TestType> r = run_loop<TestType>(host_isa(), rest, a, b);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!test::same(r[i], python_remainder(a[i], b[i]))) ++wrong;
  }
  CHECK(wrong == 0);
  CHECK(count_differences<TestType>(rest, a, b) == 0);
  CHECK(count_differences<TestType>(quotient, a, b) == 0);
}

TEST_CASE("float floor_divide floors the exact quotient", "[core][math]") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> a = {7, -7, 7, -7, 1, -1e-300, 6, 5, -5, 0.3, inf, 5, 1e300};
  const std::vector<double> b = {2, 2, -2, -2, inf, inf, 3, 0, 0, 0.1, 2, -inf, 1e-10};
  const std::vector<double> want = {3, -4, -4, 3, 0, -1, 2, inf, -inf, 2, NAN, -1, inf};
  const std::vector<double> got = run_loop<double>(host_isa(), quotient, a, b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    CAPTURE(a[i], b[i]);
    CHECK(test::same(got[i], want[i]));
  }
}

TEMPLATE_TEST_CASE("integer division rounds down", "[core][math]", int8_t, uint8_t, int32_t,
                   int64_t) {
  using T = TestType;
  const std::vector<T> a = {
      7, static_cast<T>(-7), 7, static_cast<T>(-7), std::numeric_limits<T>::min(), 5};
  const std::vector<T> b = {2, 2, static_cast<T>(-2), static_cast<T>(-2), static_cast<T>(-1), 0};
  const std::vector<T> q = run_loop<T>(host_isa(), quotient, a, b);
  const std::vector<T> r = run_loop<T>(host_isa(), rest, a, b);
  if constexpr (std::is_signed_v<T>) {
    CHECK(q == std::vector<T>{3, -4, -4, 3, std::numeric_limits<T>::min(), 5});
    CHECK(r == std::vector<T>{1, 1, -1, -1, 0, 0});
  }
  for (std::size_t i = 0; i + 1 < a.size(); ++i) {
    using U = std::make_unsigned_t<T>;  // wraps where the smallest number is divided by -1
    CHECK(static_cast<T>(static_cast<U>(q[i]) * static_cast<U>(b[i]) + static_cast<U>(r[i])) ==
          a[i]);
  }
  CHECK(count_differences<T>(quotient, samples<T>(3000, 1), samples<T>(3000, 2)) == 0);
  CHECK(count_differences<T>(rest, samples<T>(3000, 1), samples<T>(3000, 2)) == 0);
}
