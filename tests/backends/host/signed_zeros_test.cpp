// max and min order the zeros, -0 < +0, wherever in a row the other one lies: in any lane, in the
// rest after the last full vector, in any block, first or last.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// Row i is all `common`, but for `other` at position i.
Tensor one_other(int64_t n, double common, double other, DType dtype) {
  const Tensor at = eye(n, {}, 0, boolean);
  return where(at, full({}, other, dtype), full({n, n}, common, dtype));
}

bool all_have_sign(const Tensor& x, bool is_negative) {
  for (const double value : x.to(f64).to_vector<double>()) {
    if (value != 0 || std::signbit(value) != is_negative) return false;
  }
  return true;
}

/// Checks both extremes of rows where one zero differs from the rest, along both axes.
template <class Largest, class Least>
void check_zeros(int64_t n, DType dtype, const Largest& largest, const Least& least) {
  INFO(n << " elements of " << name_of(dtype));
  const Tensor one_positive = one_other(n, -0.0, 0.0, dtype);
  const Tensor one_negative = one_other(n, 0.0, -0.0, dtype);
  for (const int64_t axis : {0, 1}) {
    CHECK(all_have_sign(largest(one_positive, axis), false));
    CHECK(all_have_sign(least(one_negative, axis), true));
    CHECK(all_have_sign(largest(one_negative, axis), n == 1));
    CHECK(all_have_sign(least(one_positive, axis), n != 1));
  }
}

constexpr int64_t sizes[] = {1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 130, 200};

}  // namespace

TEST_CASE("extremes of rows order zeros at every position", "[reduction]") {
  const auto largest = [](const Tensor& x, int64_t axis) { return max(x, {axis}); };
  const auto least = [](const Tensor& x, int64_t axis) { return min(x, {axis}); };
  for (const DType dtype : {f32, f64, f16, bf16}) {
    for (const int64_t n : sizes) check_zeros(n, dtype, largest, least);
  }
}

TEST_CASE("fused extremes of rows order zeros at every position", "[reduction][jit]") {
  // -(-x) keeps every bit and makes it a kernel of its own.
  const auto fused_largest =
      compile([](const Tensor& x, int64_t axis) { return max(-(-x), {axis}); });
  const auto fused_least =
      compile([](const Tensor& x, int64_t axis) { return min(-(-x), {axis}); });
  const auto largest = [&](const Tensor& x, int64_t axis) {
    return settle(fused_largest, x, axis);
  };
  const auto least = [&](const Tensor& x, int64_t axis) { return settle(fused_least, x, axis); };
  for (const DType dtype : {f32, f64, f16, bf16}) {
    for (const int64_t n : sizes) check_zeros(n, dtype, largest, least);
  }
}

TEST_CASE("extremes of everything order zeros across blocks and threads", "[reduction]") {
  constexpr int64_t n = 40'000;
  for (const DType dtype : {f32, f64, bf16}) {
    for (const int64_t at : {int64_t{0}, int64_t{63}, int64_t{64}, int64_t{4095}, int64_t{4096},
                             int64_t{20'001}, n - 1}) {
      const Tensor here = arange(n) == at;
      const Tensor minus = full({}, -0.0, dtype);
      const Tensor plus = full({}, 0.0, dtype);
      for (const int threads : {1, 2, 3}) {
        const Threads scope(threads);
        CHECK(all_have_sign(max(where(here, plus, expand(minus, {n}))), false));
        CHECK(all_have_sign(min(where(here, minus, expand(plus, {n}))), true));
      }
    }
  }
}

TEST_CASE("of two zeros the elementwise extremes take the ordered one", "[elementwise]") {
  const auto f = [](const Tensor& a, const Tensor& b) {
    return std::pair(maximum(a, b), minimum(a, b));
  };
  for (const DType dtype : {f32, f64, f16, bf16}) {
    for (const int64_t n : sizes) {
      const Tensor minus = full({n}, -0.0, dtype);
      const Tensor plus = full({n}, 0.0, dtype);
      for (const auto& [a, b] : {std::pair(minus, plus), std::pair(plus, minus)}) {
        const auto g = compile(f);
        for (const auto& [most, least] : {f(a, b), settle(g, a, b)}) {
          CHECK(all_have_sign(most, false));
          CHECK(all_have_sign(least, true));
        }
      }
    }
  }
}
