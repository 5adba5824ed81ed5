#include "eager/ops/create.h"

#include "core/error.h"
#include "core/generator.h"
#include "eager/ops/ops.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <limits>

using namespace nitinol;

TEST_CASE("tensor() takes nested lists of any depth", "[eager][create]") {
  CHECK(tensor(3).shape() == Shape{});
  CHECK(tensor(3).dtype() == i32);
  CHECK(tensor({1, 2, 3}).shape() == Shape{3});
  CHECK(tensor({{1, 2, 3}, {4, 5, 6}}).shape() == Shape{2, 3});
  CHECK(tensor({{{{1}}}}).shape() == Shape{1, 1, 1, 1});
  CHECK(tensor({}).shape() == Shape{0});
  CHECK(tensor({{1, 2}, {3, 4}}).to_vector<int>() == std::vector<int>{1, 2, 3, 4});
}

TEST_CASE("tensor() takes vectors of vectors of any depth", "[eager][create]") {
  std::vector<std::vector<float>> rows(2, std::vector<float>(3));
  for (std::size_t i = 0; i < 6; ++i) rows[i / 3][i % 3] = static_cast<float>(i);
  CHECK(same_bits(tensor(rows), tensor({{0.0F, 1.0F, 2.0F}, {3.0F, 4.0F, 5.0F}})));
  CHECK(tensor(rows, f64).dtype() == f64);
  const std::vector<std::vector<std::vector<bool>>> flags = {{{true}, {false}}, {{false}, {true}}};
  CHECK(same_bits(tensor(flags), tensor({{{true}, {false}}, {{false}, {true}}})));
  CHECK(tensor(std::vector<std::vector<int>>{}).shape() == Shape{0, 0});
  CHECK(tensor(std::vector<std::vector<std::vector<int>>>(2)).shape() == Shape{2, 0, 0});
  rows[1].pop_back();
  CHECK_THROWS_WITH(tensor(rows),
                    Catch::StartsWith("tensor: vectors of level 1 differ: expected one of 3, got "
                                      "one of 2.\nGive all rows the same length."));
}

TEST_CASE("tensor() promotes the C++ types of its numbers", "[eager][create]") {
  CHECK(tensor({1.0f, 2}).dtype() == f32);
  CHECK(tensor({1.0, 2}).dtype() == f64);
  CHECK(tensor({true, false}).dtype() == boolean);
  CHECK(tensor({int64_t{1}, int64_t{2}}).dtype() == i64);
  CHECK(tensor({1, 2}, f16).dtype() == f16);
  CHECK(tensor({255, 0}, u8).to_vector<uint8_t>() == std::vector<uint8_t>{255, 0});
  CHECK(tensor({1e10, -1e10}, i32).to_vector<int>() ==
        std::vector<int>{std::numeric_limits<int>::max(), std::numeric_limits<int>::min()});
}

TEST_CASE("borrowed memory is read in place and released once", "[eager][create]") {
  const std::vector<float> values = {1, 2, 3, 4};
  int released = 0;
  {
    Tensor view;
    {
      const Tensor x = borrow(values.data(), {2, 2}, [&] { ++released; });
      CHECK(x.data<float>().data() == values.data());
      CHECK_FALSE(is_donatable(x));
      view = x[1];
    }
    CHECK(released == 0);
    CHECK(view.to_vector<float>() == std::vector<float>{3, 4});
  }
  CHECK(released == 1);
}

TEST_CASE("from_span copies", "[eager][create]") {
  std::vector<int> values = {1, 2, 3, 4};
  const Tensor x = from_span<int>(values, {2, 2});
  values[0] = 9;
  CHECK(x.to_vector<int>() == std::vector<int>{1, 2, 3, 4});
}

TEST_CASE("filled tensors have the dtypes asked for", "[eager][create][host]") {
  CHECK(zeros({2}).dtype() == f32);
  CHECK(ones({2}, i8).to_vector<int8_t>() == std::vector<int8_t>{1, 1});
  CHECK(full({2}, 2.5).dtype() == f32);
  CHECK(full({2}, 2).dtype() == i64);
  CHECK(full({2}, true).dtype() == boolean);
  CHECK(full({2}, 7, bf16).to_vector<float>() == std::vector<float>{7, 7});
  CHECK(full({1}, 0.1, f64).item<double>() == 0.1);
  const Tensor like = zeros({3, 1}, i16);
  CHECK(ones_like(like).spec() == like.spec());
  CHECK(full_like(like, 3.9).to_vector<int16_t>() == std::vector<int16_t>{3, 3, 3});
  CHECK(zeros({2, 2}).data<float>().size() == 4);
}

TEST_CASE("arange counts as Python's range", "[eager][create]") {
  CHECK(arange(4).to_vector<int64_t>() == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(arange(5, 0, -2).to_vector<int64_t>() == std::vector<int64_t>{5, 3, 1});
  CHECK(arange(3, 3).shape() == Shape{0});
  CHECK(arange(0, 1, 0.25).to_vector<float>() == std::vector<float>{0, 0.25, 0.5, 0.75});
  CHECK(arange(3, f16).dtype() == f16);
}

TEST_CASE("ranges of integers are exact at any size", "[eager][create]") {
  constexpr int64_t large = int64_t{1} << 53;
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  using List = std::vector<int64_t>;
  CHECK(arange(large, large + 3).to_vector<int64_t>() == List{large, large + 1, large + 2});
  CHECK(arange(most - 2, most).to_vector<int64_t>() == List{most - 2, most - 1});
  CHECK(arange(most, most - 3, -1).to_vector<int64_t>() == List{most, most - 1, most - 2});
  CHECK(arange(least + 2, least, -1).to_vector<int64_t>() == List{least + 2, least + 1});
  CHECK(arange(least, most, most).to_vector<int64_t>() == List{least, -1, most - 1});
  CHECK(arange(most, least, least).to_vector<int64_t>() == List{most, -1});
  CHECK(arange(3, least + 3, least).to_vector<int64_t>() == List{3});
  CHECK(arange(0, -5).shape() == Shape{0});
  CHECK(arange(7, 0, -3).to_vector<int64_t>() == List{7, 4, 1});
  CHECK(arange(true, 4).to_vector<int64_t>() == List{1, 2, 3});
  CHECK_THROWS_AS(arange(0, 4, 0), Error);
  CHECK_THROWS_AS(arange(least, most), Error);
}

TEST_CASE("integers that an integer dtype does not hold are refused", "[eager][create]") {
  CHECK(arange(256, u8).size() == 256);
  CHECK(arange(127, -129, -1, i8).size() == 256);
  CHECK(arange(5, 5, 300, u8).size() == 0);
  CHECK_THROWS_AS(arange(257, u8), Error);
  CHECK_THROWS_AS(arange(-1, 3, 1, u8), Error);
  CHECK_THROWS_AS(arange(0, -130, -1, i8), Error);
  CHECK(full({1}, ~0ULL).dtype() == u64);
  CHECK(full({1}, ~0ULL).item<uint64_t>() == ~0ULL);
  CHECK_THROWS_AS(full({1}, uint64_t{1} << 63, i64), Error);
  CHECK_THROWS_AS(full({1}, -1, u64), Error);
  CHECK(full({1}, uint64_t{5}).item<int64_t>() == 5);
  CHECK_THROWS_AS(tensor({300, -1}, u8), Error);
  for (const DType dtype : {u8, i8, i16, i32}) {
    const auto bits = static_cast<int>(8 * size_of(dtype));
    const int64_t high = (int64_t{1} << (is_unsigned(dtype) ? 8 : bits - 1)) - 1;
    const int64_t low = is_unsigned(dtype) ? 0 : -high - 1;
    INFO(name_of(dtype));
    const Tensor x = full({2}, high, dtype);
    CHECK(x[0].item<int64_t>() == high);
    CHECK(full_like(x, low)[0].item<int64_t>() == low);
    for (const int64_t bad : {high + 1, low - 1}) {
      CHECK_THROWS_AS(full({2}, bad, dtype), Error);
      CHECK_THROWS_AS(full_like(x, bad), Error);
      CHECK_THROWS_AS(x + bad, Error);
      CHECK_THROWS_AS(bad * x, Error);
      CHECK_THROWS_AS(remainder(x, bad), Error);
      CHECK_THROWS_AS(where(x > 0, x, bad), Error);
      CHECK_THROWS_AS(maximum(x, bad), Error);
      CHECK_THROWS_AS(minimum(bad, x), Error);
      CHECK_THROWS_AS(clamp(x, 0, bad), Error);
      CHECK_THROWS_AS(pow(x, bad), Error);
      CHECK_THROWS_AS(x & bad, Error);
      CHECK_THROWS_AS(x << bad, Error);
      CHECK_THROWS_AS(pad(x, {{1, 1}}, bad), Error);
      CHECK_THROWS_AS(x.at({0}).set(bad), Error);
    }
  }
}

TEST_CASE("linspace meets both ends exactly", "[eager][create]") {
  const std::vector<double> x = linspace(0.1, 0.7, 7, f64).to_vector<double>();
  CHECK(x.front() == 0.1);
  CHECK(x.back() == 0.7);
  CHECK(linspace(3, 5, 1).to_vector<float>() == std::vector<float>{3});
  CHECK(linspace(3, 5, 0).shape() == Shape{0});
  for (const int64_t count : {0, 1, 3}) CHECK_THROWS_AS(linspace(0, 1, count, i32), Error);
}

TEST_CASE("randint draws what its dtype holds, or nothing", "[eager][random]") {
  const Tensor bytes = randint(0, 256, {4000}, u8);
  CHECK(min(bytes).item<int>() == 0);
  CHECK(max(bytes).item<int>() == 255);
  CHECK(min(randint(-128, 128, {4000}, i8)).item<int>() == -128);
  CHECK_THROWS_AS(randint(-5, 5, {8}, u8), Error);
  CHECK_THROWS_AS(randint(0, 257, {8}, u8), Error);
  CHECK_THROWS_AS(randint(0, 300, {6}, i8), Error);
  CHECK_THROWS_AS(randint(-129, 0, {6}, i8), Error);
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(min(randint(-most, most, {100})).item<int64_t>() < 0);
}

TEST_CASE("random numbers depend on the seed and the order of draws", "[eager][random]") {
  manual_seed(7);
  const Tensor first = rand({5});
  const Tensor second = rand({5});
  CHECK_FALSE(same_bits(first, second));
  manual_seed(7);
  CHECK(same_bits(rand({5}), first));
  CHECK(same_bits(rand({5}), second));
  manual_seed(7);
  CHECK(same_bits(rand({10}), concat({first, second})));
  const Generator mine(7);
  CHECK(same_bits(rand({5}, f32, mine), first));
}

TEST_CASE("random numbers have the right moments", "[eager][random]") {
  manual_seed(1);
  const Tensor uniform = rand({100000}, f64);
  CHECK(mean(uniform).item<double>() == Approx(0.5).margin(0.005));
  CHECK(var(uniform).item<double>() == Approx(1.0 / 12).margin(0.002));
  CHECK(min(uniform).item<double>() >= 0);
  CHECK(max(uniform).item<double>() < 1);
  const Tensor normal = randn({100000});
  CHECK(mean(normal).item<double>() == Approx(0).margin(0.02));
  CHECK(var(normal).item<double>() == Approx(1).margin(0.03));
  const Tensor dice = randint(1, 7, {60000}, u8);
  CHECK(dice.dtype() == u8);
  CHECK(min(dice).item<int>() == 1);
  CHECK(max(dice).item<int>() == 6);
  CHECK(sum(dice == 3).item<double>() == Approx(10000).margin(500));
}
