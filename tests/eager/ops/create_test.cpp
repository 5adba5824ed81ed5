#include "eager/ops/create.h"

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

TEST_CASE("tensor() promotes the C++ types of its numbers", "[eager][create]") {
  CHECK(tensor({1.0f, 2}).dtype() == f32);
  CHECK(tensor({1.0, 2}).dtype() == f64);
  CHECK(tensor({true, false}).dtype() == boolean);
  CHECK(tensor({int64_t{1}, int64_t{2}}).dtype() == i64);
  CHECK(tensor({1, 2}, f16).dtype() == f16);
  CHECK(tensor({300, -1}, u8).to_vector<uint8_t>() == std::vector<uint8_t>{44, 255});
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

TEST_CASE("filled tensors have the dtypes asked for", "[eager][create]") {
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

TEST_CASE("linspace meets both ends exactly", "[eager][create]") {
  const std::vector<double> x = linspace(0.1, 0.7, 7, f64).to_vector<double>();
  CHECK(x.front() == 0.1);
  CHECK(x.back() == 0.7);
  CHECK(linspace(3, 5, 1).to_vector<float>() == std::vector<float>{3});
  CHECK(linspace(3, 5, 0).shape() == Shape{0});
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
