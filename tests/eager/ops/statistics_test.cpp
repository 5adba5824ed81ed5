#include "eager/ops/statistics.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace nitinol;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();

using Reduce = Tensor(const Tensor& x, const Axes& axes, KeepDims keep);

}  // namespace

TEST_CASE("integers and booleans are summed as int64", "[eager][reduce]") {
  CHECK(sum(full({1000}, 127, i8)).item<int64_t>() == 127000);
  CHECK(sum(tensor({true, true, false})).item<int64_t>() == 2);
  CHECK(sum(tensor({1, 2}, u8)).dtype() == u64);
  CHECK(prod(tensor({1000, 1000, 1000, 1000})).item<int64_t>() == 1000000000000);
  CHECK(mean(tensor({1, 2})).item<float>() == 1.5F);
}

TEST_CASE("16-bit dtypes accumulate in float32", "[eager][reduce]") {
  CHECK(sum(full({5000}, 1, f16)).item<float>() == 5000);
  CHECK(mean(full({5000}, 40, f16)).item<float>() == 40);
  CHECK(mean(full({5000}, 40, f16)).dtype() == f16);
  CHECK(var(full({100}, 300, f16)).item<float>() == 0);
}

TEST_CASE("extremes meet NaN and booleans", "[eager][reduce]") {
  const Tensor x = tensor({1.0F, std::nanf(""), 3.0F});
  CHECK(std::isnan(max(x).item<float>()));
  CHECK(argmax(x).item<int>() == 1);
  CHECK(argmin(x).item<int>() == 1);
  CHECK(argmax(tensor({2, 5, 5})).item<int>() == 1);
  CHECK(max(tensor({false, true})).dtype() == boolean);
  CHECK(argmax(tensor({false, true, true})).item<int>() == 1);
  CHECK(argmax(reshape(tensor({1, 9, 3, 4}), {2, 2}), 0).to_vector<int64_t>() ==
        std::vector<int64_t>{1, 0});
  CHECK(argmax(ones({2, 3}), -1, keepdims).shape() == Shape{2, 1});
}

TEST_CASE("positions over several axes count row by row", "[eager][reduce]") {
  const Tensor x = reshape(tensor({3, 9, 1, 2, 0, 9, 7, 8, 5, 4, 6, 7}), {2, 3, 2});
  using Ints = std::vector<int64_t>;
  CHECK(argmax(x, {1, 2}).to_vector<int64_t>() == Ints{1, 1});
  CHECK(argmin(x, {-1, 1}).to_vector<int64_t>() == Ints{4, 3});
  CHECK(argmax(x, {0, 2}).to_vector<int64_t>() == Ints{1, 2, 1});
  CHECK(argmax(x, {0, 1, 2}).item<int64_t>() == argmax(x).item<int64_t>());
  CHECK(argmax(x, {0, 2}, keepdims).shape() == Shape{1, 3, 1});
  CHECK(argmax(x > 6, {1, 2}).to_vector<int64_t>() == Ints{1, 0});
  CHECK(argmax(zeros({0, 2, 3}), {1, 2}).shape() == Shape{0});
  CHECK_THROWS_WITH(argmax(zeros({2, 0, 3}), {0, 1}), Catch::Contains("no elements"));
  CHECK_THROWS_AS(argmax(x, {1, 1}), Error);
  CHECK_THROWS_AS(argmin(x, {0, 3}), Error);
  const auto f = compile([](const Tensor& v) { return argmax(v * 2, {0, 2}, keepdims); });
  for (int i = 0; i < 3; ++i) CHECK(same_bits(f(x), argmax(x, {0, 2}, keepdims)));
}

TEST_CASE("what reductions give does not depend on how their operand lies", "[eager][reduce]") {
  constexpr int64_t bits = 0x2545f4914f6cdd1d;
  const Tensor i = remainder(arange(9 * 40 * 70) * bits, 1000) - 500;
  for (const DType dtype : {f32, i64, i16, boolean}) {
    Tensor whole = reshape(dtype == boolean ? i > 490 : cast(i, dtype), {9, 40, 70});
    if (dtype == f32) whole = where(whole == 7, std::nanf(""), whole * 0.1F);
    const auto part = [&](const Range& range) { return slice(whole, 2, range); };
    const std::vector<Tensor> operands = {
        whole,
        permute(whole, {2, 1, 0}),
        permute(whole, {1, 2, 0}),
        permute(part({.start = 3, .stop = 50}), {0, 2, 1}),
        transpose(part({.step = 2}), 0, 2),
        flip(permute(whole, {0, 2, 1}), 1),
        expand(part({.stop = 1}), {9, 40, 70}),
        permute(expand(slice(whole, 0, {.stop = 1}), {9, 40, 70}), {2, 0, 1})};
    for (const Tensor& x : operands) {
      const Tensor packed = copy(x);
      for (const Dims& axes : std::vector<Dims>{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}}) {
        for (Reduce* const reduce : {&max, &min, &sum, &prod, &any, &all, &count_nonzero})
          CHECK(same_bits(reduce(x, axes, KeepDims::no), reduce(packed, axes, KeepDims::no)));
        if (dtype != boolean) CHECK(same_bits(argmax(x, axes), argmax(packed, axes)));
      }
    }
  }
}

TEST_CASE("logsumexp is right at infinities", "[eager][statistics]") {
  CHECK(logsumexp(tensor({-inf, -inf})).item<float>() == -inf);
  CHECK(logsumexp(tensor({inf, 0.0F})).item<float>() == inf);
  CHECK(logsumexp(tensor({1000.0F, 1000.0F})).item<float>() == Approx(1000.6931));
  CHECK(std::isnan(logsumexp(tensor({std::nanf(""), 0.0F})).item<float>()));
  CHECK(logsumexp(ones({2, 3}), 1, keepdims).shape() == Shape{2, 1});
  CHECK(logsumexp(ones({2, 3}), 1).shape() == Shape{2});
  CHECK(logsumexp(ones({1, 1})).shape() == Shape{});
}

TEST_CASE("softmax does not overflow", "[eager][statistics]") {
  CHECK(softmax(tensor({1e30F, 1e30F})).to_vector<float>() == std::vector<float>{0.5, 0.5});
  CHECK(softmax(tensor({-inf, 0.0F})).to_vector<float>() == std::vector<float>{0, 1});
  CHECK(log_softmax(tensor({-1000.0F, 0.0F})).to_vector<float>() == std::vector<float>{-1000, 0});
  CHECK(softmax(tensor({1, 1})).dtype() == f32);
}

TEST_CASE("ddof divides by fewer", "[eager][statistics]") {
  const Tensor x = tensor({1.0, 2.0, 3.0, 4.0});
  CHECK(var(x).item<double>() == 1.25);
  CHECK(var(x, {}, 1).item<double>() == Approx(5.0 / 3));
  CHECK(stddev(x).item<double>() == Approx(std::sqrt(1.25)));
  CHECK(std::isnan(var(tensor({1.0}), {}, 1).item<double>()));
}

TEST_CASE("layer_norm takes weight, bias or neither", "[eager][statistics]") {
  const Tensor x = tensor({{1.0F, 3.0F}, {2.0F, 6.0F}});
  const LayerNorm scaled = {.weight = full({2}, 2), .bias = ones({2}), .eps = 0};
  CHECK(layer_norm(x, {.eps = 0}).to_vector<float>() == std::vector<float>{-1, 1, -1, 1});
  CHECK(layer_norm(x, scaled).to_vector<float>() == std::vector<float>{-1, 3, -1, 3});
  CHECK(layer_norm(x, {.bias = ones({2}), .eps = 0}).to_vector<float>() ==
        std::vector<float>{0, 2, 0, 2});
}

TEST_CASE("matmul takes vectors and batches", "[eager][matmul]") {
  const Tensor v = tensor({1, 2});
  const Tensor m = tensor({{1, 2}, {3, 4}});
  CHECK(matmul(v, v).shape() == Shape{});
  CHECK(matmul(v, v).item<int>() == 5);
  CHECK(matmul(m, v).to_vector<int>() == std::vector<int>{5, 11});
  CHECK(matmul(v, m).to_vector<int>() == std::vector<int>{7, 10});
  CHECK(matmul(ones({5, 1, 2, 3}), ones({4, 3, 2})).shape() == Shape{5, 4, 2, 2});
  CHECK(matmul(ones({3}), ones({4, 3, 2})).shape() == Shape{4, 2});
  CHECK(matmul(ones({2, 2}, i8), ones({2, 2}, f16)).dtype() == f16);
}
