#include "eager/promotion.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "jit/compile.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <array>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

constexpr auto dtypes =
    std::to_array({boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64});

Tensor weak(const Scalar& number) {
  return constant(number, number.dtype(), true);
}

}  // namespace

TEST_CASE("two tensors meet in the dtype of the table", "[eager][promotion]") {
  for (int i = 0; i < dtype_count; ++i) {
    for (int j = 0; j < dtype_count; ++j) {
      const DType a = dtypes[static_cast<std::size_t>(i)];
      const DType b = dtypes[static_cast<std::size_t>(j)];
      INFO(name_of(a) << " and " << name_of(b));
      if (is_integer(a) && is_integer(b) && (a == u64 || b == u64) &&
          is_unsigned(a) != is_unsigned(b)) {
        CHECK_THROWS_WITH(ones({2}, a) + ones({2}, b),
                          Catch::StartsWith("add: no integer dtype holds both"));
        continue;
      }
      CHECK((ones({2}, a) == ones({2}, b)).dtype() == boolean);
      CHECK(where(true, ones({2}, a), ones({}, b)).dtype() ==
            promote(a, b));  // core/dtype_test.cpp
    }
  }
}

TEST_CASE("functions of dtypes that do not meet say their own name", "[eager][promotion]") {
  struct Case {
    const char* name;
    Tensor (*function)(const Tensor&, const Tensor&);
  };
  using T = const Tensor&;
  const Case cases[] = {
      {"add", [](T a, T b) { return a + b; }},
      {"sub", [](T a, T b) { return a - b; }},
      {"mul", [](T a, T b) { return a * b; }},
      {"div", [](T a, T b) { return a / b; }},
      {"remainder", [](T a, T b) { return a % b; }},
      {"floor_divide", [](T a, T b) { return floor_divide(a, b); }},
      {"fmod", [](T a, T b) { return fmod(a, b); }},
      {"pow", [](T a, T b) { return pow(a, b); }},
      {"maximum", [](T a, T b) { return maximum(a, b); }},
      {"fmin", [](T a, T b) { return fmin(a, b); }},
      {"clamp", [](T a, T b) { return clamp(a, 0, b); }},
      {"fma", [](T a, T b) { return fma(a, a, b); }},
      {"atan2", [](T a, T b) { return atan2(a, b); }},
      {"nextafter", [](T a, T b) { return nextafter(a, b); }},
      {"isclose", [](T a, T b) { return isclose(a, b); }},
      {"array_equal", [](T a, T b) { return array_equal(a, b); }},
      {"lt", [](T a, T b) { return a < b; }},
      {"eq", [](T a, T b) { return a == b; }},
      {"bitwise_and", [](T a, T b) { return a & b; }},
      {"left_shift", [](T a, T b) { return a << b; }},
      {"where", [](T a, T b) { return where(a > 0, a, b); }},
      {"concat",
       [](T a, T b) {
         return concat({a, b});
       }},
      {"stack",
       [](T a, T b) {
         return stack({a, b});
       }},
      {"matmul", [](T a, T b) { return matmul(a, b); }},
      {"vecdot", [](T a, T b) { return vecdot(a, b); }},
      {"einsum",
       [](T a, T b) {
         return einsum("i,i->", {a, b});
       }},
      {"isin", [](T a, T b) { return isin(a, b); }},
      {"searchsorted", [](T a, T b) { return searchsorted(a, b); }},
  };
  const Tensor a = ones({2}, u64), b = ones({2}, i32);
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const auto says = Catch::StartsWith(std::string(c.name) + ": no integer dtype holds both");
    CHECK_THROWS_WITH(c.function(a, b), says);
    CHECK_THROWS_WITH(compile(c.function)(a, b), says);
  }
}

TEST_CASE("a number takes the tensor's dtype within its kind", "[eager][promotion]") {
  for (const DType dtype : dtypes) {
    const Tensor x = ones({2}, dtype);
    const DType with_real = is_floating(dtype) ? dtype : f32;
    const DType with_integer = dtype == boolean ? i64 : dtype;
    INFO(name_of(dtype));
    CHECK((x * 0.5).dtype() == with_real);
    CHECK((0.5 * x).dtype() == with_real);
    CHECK((x + 2).dtype() == with_integer);
    CHECK(where(true, x, true).dtype() == dtype);
    CHECK((x * Scalar(0.5)).dtype() == with_real);
    CHECK((x * weak(0.5)).dtype() == with_real);
    CHECK((x + weak(2)).dtype() == with_integer);
    CHECK_FALSE((x * weak(0.5)).spec().is_weak);
  }
}

TEST_CASE("numbers alone stay weak", "[eager][promotion]") {
  const Tensor rate = weak(0.25) * 2;
  CHECK(rate.spec().is_weak);
  CHECK(rate.dtype() == f64);
  CHECK((rate * ones({2})).dtype() == f32);
  const Tensor mixed = weak(3) * 0.5;
  CHECK(mixed.spec().is_weak);
  CHECK((mixed * ones({2}, f16)).dtype() == f16);
  CHECK(mixed.item<double>() == 1.5);
}

TEST_CASE("true division of integers gives floating numbers", "[eager][promotion]") {
  CHECK((tensor({7, 1}) / tensor({2, 4})).to_vector<float>() == std::vector<float>{3.5, 0.25});
  CHECK((tensor({7, 1}) / 2).dtype() == f32);
  CHECK((tensor({true, false}) / 2).dtype() == f32);
  CHECK((weak(1) / 4).dtype() == f64);
  CHECK((tensor({7.0}) / 2).dtype() == f64);
}

TEST_CASE("results wrap in the tensor's integers, numbers must be among them",
          "[eager][promotion]") {
  CHECK_THROWS_AS((tensor({1}, u8) + 300), Error);
  CHECK((tensor({45}, u8) + 255).to_vector<uint8_t>() == std::vector<uint8_t>{44});
  CHECK((tensor({1}, i64) + INT64_MAX).to_vector<int64_t>() == std::vector<int64_t>{INT64_MIN});
}

TEST_CASE("Variables and Scalars are operands", "[eager][promotion]") {
  const Variable v(tensor({1.0f, 2.0f}));
  const Scalar two = 2;
  CHECK((v * two + 1).to_vector<float>() == std::vector<float>{3, 5});
  CHECK((two - v).to_vector<float>() == std::vector<float>{1, 0});
  v += v;
  v *= 2;
  v -= 1;
  CHECK(v.get().to_vector<float>() == std::vector<float>{3, 7});
  Tensor x = v;
  x /= 2;
  CHECK(x.to_vector<float>() == std::vector<float>{1.5, 3.5});
}

TEST_CASE("functions of floats compute integers and booleans in float32", "[eager][promotion]") {
  using Function = Tensor (*)(const Tensor&);
  const Function functions[] = {sqrt, rsqrt, reciprocal, exp,  log,     log1p, sin,
                                cos,  tanh,  erf,        gelu, sigmoid, silu,  softplus};
  for (const Function f : functions) {
    for (const DType dtype : {boolean, u8, i8, i32, i64}) {
      const Tensor x = tensor({1, 0, 1}).to(dtype);
      CHECK(same_bits(f(x), f(x.to(f32))));
    }
    for (const Scalar& number : {Scalar(2), Scalar(true)})
      CHECK(same_bits(f(weak(number)), f(weak(number.to_double()))));
  }
  const Tensor x = tensor({3, -4}), y = tensor({-2, 5});
  CHECK(same_bits(copysign(x, y), copysign(x.to(f32), y)));
  CHECK(same_bits(fma(x, y, 1), fma(x.to(f32), y, 1)));
  CHECK(copysign(weak(1), 2).dtype() == f64);
}

TEST_CASE("no integer is infinite or NaN", "[eager][promotion]") {
  for (const DType dtype : {boolean, u8, i64}) {
    const Tensor x = zeros({2, 3}, dtype);
    CHECK(same_bits(isnan(x), zeros({2, 3}, boolean)));
    CHECK(same_bits(isinf(x), zeros({2, 3}, boolean)));
    CHECK(same_bits(isfinite(x), ones({2, 3}, boolean)));
  }
}

TEST_CASE("of booleans a sum is or, a product and", "[eager][promotion]") {
  const Tensor a = tensor({false, false, true, true}), b = tensor({false, true, false, true});
  for (const Tensor& either : {a + b, add(a, b), maximum(a, b)}) CHECK(same_bits(either, a || b));
  for (const Tensor& both : {a * b, mul(a, b), minimum(a, b)}) CHECK(same_bits(both, a && b));
  CHECK(same_bits(a + true, ones({4}, boolean)));
  CHECK((a + 1).dtype() == i64);
  for (const Tensor& same : {abs(b), floor(b), ceil(b), trunc(b), round(b)})
    CHECK(same_bits(same, b));
  CHECK_THROWS_AS(a - b, Error);
  CHECK_THROWS_AS(-a, Error);
}

TEST_CASE("shifts by negative counts, or by the width and more, leave the sign", "[eager]") {
  const Tensor x = tensor({5, -5}), counts = tensor({{-1}, {0}, {31}, {32}, {100}});
  CHECK((x << counts).to(i64).to_vector<int64_t>() ==
        std::vector<int64_t>{0, 0, 5, -5, -2147483648, -2147483648, 0, 0, 0, 0});
  CHECK((x >> counts).to(i64).to_vector<int64_t>() ==
        std::vector<int64_t>{0, -1, 5, -5, 0, -1, 0, -1, 0, -1});
  CHECK((tensor({255}).to(u8) >> tensor({8}).to(u8)).to(i64).to_vector<int64_t>() ==
        std::vector<int64_t>{0});
}
