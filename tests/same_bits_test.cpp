#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace nitinol;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

/// Whether a library's result may be `got`.
bool is_allowed(const Tensor& got, const Tensor& expected) {
  return ulps_apart(got, expected) <= most_ulps_apart(expected.dtype());
}

}  // namespace

TEST_CASE("distances are in ulps of the largest element", "[tree][ulps]") {
  const Tensor x = tensor({1.5F, -0.25F, 0.0F});
  CHECK(ulps_apart(x, x) == 0);
  CHECK(ulps_apart(x + tensor({0.0F, 0.0F, 0x1p-23F}), x) == 1);
  CHECK(ulps_apart(4.0 * x, 4.0 * x + tensor({0.0F, 0x1p-20F, 0.0F})) == 2);
  CHECK(ulps_apart(x.to(bf16), (x + tensor({0.0F, 0.0F, 0x1p-7F})).to(bf16)) == 1);
  CHECK(std::isinf(ulps_apart(x, reshape(x, {3, 1}))));
  CHECK(std::isinf(ulps_apart(x, x.to(f64))));
  CHECK(std::isinf(ulps_apart(x, tensor({1.5F, -0.25F, std::nanf("")}))));
  CHECK(std::isinf(ulps_apart(tensor({inf}), tensor({-inf}))));
  CHECK(ulps_apart(tensor({inf, std::nanf("")}), tensor({inf, std::nanf("")})) == 0);
}

TEST_CASE("sums in another order are close enough, and what is wrong is not", "[tree][ulps]") {
  manual_seed(3);
  const Tensor a = randn({37, 300}), b = randn({300, 41});
  const auto by_parts = [](const Tensor& x, const Tensor& y) -> Tensor {
    return matmul(slice(x, 1, {150, 300}), slice(y, 0, {150, 300})) +
           matmul(slice(x, 1, {0, 150}), slice(y, 0, {0, 150}));
  };
  for (const DType dtype : {f32, f64}) {
    const Tensor x = a.to(dtype), y = b.to(dtype), expected = matmul(x, y);
    CHECK(is_allowed(by_parts(x, y), expected));
    // One of 300 products left out, in one element; two columns that changed places; less
    // precision.
    const Tensor last = slice(x, 1, {0, 1}) * slice(transpose(y), 1, {0, 1})[0][0];
    CHECK_FALSE(
        is_allowed(expected - pad(slice(last, 0, {0, 1}), {{0, 36}, {0, 40}}, 0.0), expected));
    CHECK_FALSE(is_allowed(flip(expected, 1), expected));
    CHECK_FALSE(is_allowed(matmul(x.to(bf16), y.to(bf16)).to(dtype), expected));
  }
  const Tensor expected = matmul(a.to(bf16), b.to(bf16));
  CHECK(is_allowed(matmul(a.to(bf16).to(f32), b.to(bf16).to(f32)).to(bf16), expected));
  CHECK_FALSE(is_allowed(flip(expected, 0), expected));
}
