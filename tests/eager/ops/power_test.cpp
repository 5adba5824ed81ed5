// Exponents that pow decides by products and roots.
#include "core/math/pow.h"
#include "eager/ops/arithmetic.h"
#include "tests/jit/checked_calls.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <limits>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// Signs, sizes and special numbers; enough for blocks, whole vectors and a rest.
Tensor bases(DType dtype) {
  const Tensor x = (rand({700}) * 8 - 4).to(dtype);
  const Tensor special = tensor({0.0, -0.0, 1.0, -1.0, 1e-40, -1e-40, 3e38, 1e19, -1e19, 1e-20, 0.5,
                                 infinity, -infinity, not_a_number});
  return concat({x, special.to(dtype), x * 1000});
}

}  // namespace

TEST_CASE("an exponent gives the same bits wherever it comes from", "[ops][power]") {
  manual_seed(1);
  const DType dtype = GENERATE(f16, bf16, f32, f64);
  const Tensor x = bases(dtype);
  std::vector<double> exponents(math::simple_exponents.begin(), math::simple_exponents.end());
  // As short as those, and others.
  exponents.insert(exponents.end(), {0, -3, 4, 1.5, 0.25, infinity, -infinity, not_a_number});
  exponents.insert(exponents.end(), {2.5, 1.0 / 3, 100});
  for (const double exponent : exponents) {
    CAPTURE(name_of(dtype), exponent);
    const Tensor power = pow(x, exponent);
    const Tensor same = full(x.shape(), exponent, dtype);
    CHECK(same_bits(power, pow(x, same)));
    CHECK(same_bits(power, pow(x, same * 1)));
    CHECK(same_bits(power, pow(x, full({}, exponent, dtype))));
    CHECK(same_bits(power, pow(x, expand(full({1}, exponent, dtype), x.shape()))));
    // Between others, so that no vector has one exponent.
    const Tensor others = concat({full({1}, 2.25, dtype), full({1}, exponent, dtype),
                                  full({1}, -7, dtype), full({1}, 2, dtype)});
    const Tensor columns = pow(unsqueeze(x, 1), others);
    CHECK(same_bits(power, reshape(slice(columns, 1, Range{1, 2}), x.shape())));
    const auto fused =
        compile([](const Tensor& v, const Scalar& s) -> Tensor { return pow(v * 1, s) + 0 * v; });
    const auto fixed =
        compile([exponent](const Tensor& v) -> Tensor { return pow(v * 1, exponent) + 0 * v; });
    CHECK(same_bits(pow(x * 1, exponent) + 0 * x, settle(fused, x, Scalar(exponent))));
    CHECK(same_bits(pow(x * 1, exponent) + 0 * x, settle(fixed, x)));
    const auto beside = compile([](const Tensor& v, const Tensor& e) -> Tensor {
      return pow(unsqueeze(v, 1) * 1, e) + 0 * unsqueeze(v, 1);
    });
    CHECK(same_bits(columns + 0 * unsqueeze(x, 1), settle(beside, x, others)));
  }
}

TEST_CASE("simple exponents are products, roots and quotients", "[ops][power]") {
  manual_seed(2);
  const DType dtype = GENERATE(f16, bf16, f32, f64);
  const Tensor x = bases(dtype);
  CAPTURE(name_of(dtype));
  CHECK(same_bits(pow(x, 2), x * x));
  CHECK(same_bits(pow(x, 1), x * 1));
  CHECK(same_bits(pow(x, -1), 1 / x));
  CHECK(same_bits(pow(abs(x), 0.5), sqrt(abs(x))));
  // In one rounding of the dtype.
  const DType wide = dtype == f64 ? f64 : f32;
  const Tensor w = x.to(wide);
  CHECK(same_bits(pow(x, 3), (w * w * w).to(dtype)));
}

TEST_CASE("a view's exponents, rows of them, and results in place of them", "[ops][power]") {
  manual_seed(3);
  const Tensor x = randn({40, 33});
  const Tensor square = x * x;
  CHECK(same_bits(pow(transpose(x), 2), transpose(square)));
  CHECK(same_bits(pow(slice(x, 1, Range{3, 30, 2}), 2), slice(square, 1, Range{3, 30, 2})));
  const Tensor twos = full({40, 1}, 2.0, f32);
  CHECK(same_bits(pow(x, twos), square));
  CHECK(same_bits(pow(x, full({33}, 2.0, f32)), square));
  CHECK(same_bits(pow(x + 0, 2), square));
}

TEST_CASE("powers of integers are the same wherever the exponent comes from", "[ops][power]") {
  const DType dtype = GENERATE(u8, i8, u16, i16, u32, i32, u64, i64);
  const Tensor x = (arange(700) * 7919 - 350 * 7919).to(dtype);
  for (const int exponent : {0, 1, 2, 3, 4, 5, 9, 70}) {
    CAPTURE(name_of(dtype), exponent);
    Tensor product = x * 0 + 1;
    for (int k = 0; k < exponent; ++k) product = product * x;
    CHECK(same_bits(pow(x, exponent), product));
    CHECK(same_bits(pow(x, full({}, exponent, dtype)), product));
    CHECK(same_bits(pow(x, full({700}, exponent, dtype)), product));
    CHECK(same_bits(pow(x + 0, expand(full({1}, exponent, dtype), {700})), product));
    const auto fixed = compile([exponent](const Tensor& v) { return pow(v * 1, exponent) + v; });
    const auto given = compile([](const Tensor& v, const Tensor& e) { return pow(v * 1, e) + v; });
    CHECK(same_bits(settle(fixed, x), product + x));
    CHECK(same_bits(settle(given, x, full({700}, exponent, dtype)), product + x));
  }
}

TEST_CASE("an integer has no negative power", "[ops][power]") {
  const Tensor x = tensor({1, 2, -3}), good = tensor({0, 2, 3}), bad = tensor({1, 2, -1});
  const auto says = Catch::StartsWith("pow: an integer to the power of a negative integer");
  CHECK_THROWS_WITH(pow(x, -1), says);
  CHECK_THROWS_WITH(pow(2, bad), says);
  CHECK_THROWS_WITH(pow(x.to(u8), bad), says);
  CHECK_THROWS_WITH(pow(x, tensor(-1)), says);
  CHECK(same_bits(pow(x, good), tensor({1, 4, -27})));
  CHECK(same_bits(pow(x, good.to(u8)), tensor({1, 4, -27})));
  CHECK(same_bits(pow(x.to(u8), 2), tensor({1, 4, 9}, u8)));
  CHECK(same_bits(pow(x, 1 == 1), x));
  CHECK(pow(x, -1.0).dtype() == f32);
  CHECK(pow(x.to(f32), bad).dtype() == f32);

  const auto power = [](const Tensor& a, const Tensor& b) { return pow(a, b) + 1; };
  const auto compiled = compile(power, {.name = "f", .check = Check::never});
  check_good(compiled, power, x, good);
  check_bad(compiled, power, x, bad);
  CHECK(same_bits(compiled(x, good), power(x, good)));
  const auto of_number = compile([](const Tensor& a, const Scalar& b) { return pow(a, b); });
  for (int i = 0; i < 4; ++i) CHECK(same_bits(of_number(x, Scalar(i)), pow(x, i)));
  CHECK_THROWS_WITH(of_number(x, Scalar(-1)), says);
}
