#include "nitinol.h"
#include "tests/ints.h"
#include "tests/on_threads.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

using namespace nitinol;
using nitinol::test::ints;
using namespace nitinol::test;
using Ints = std::vector<int64_t>;
using Doubles = std::vector<double>;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan_number = std::numeric_limits<double>::quiet_NaN();
Doubles doubles(const Tensor& x) {
  return x.to(f64).to_vector<double>();
}

}  // namespace

TEST_CASE("sort and argsort put elements in order", "[eager][order]") {
  const Tensor x = tensor({{3, 1, 2}, {1, 3, 1}});
  CHECK(ints(sort(x)) == Ints{1, 2, 3, 1, 1, 3});
  CHECK(ints(sort(x, 0)) == Ints{1, 1, 1, 3, 3, 2});
  CHECK(ints(sort(x, -1, SortOrder::descending)) == Ints{3, 2, 1, 3, 1, 1});
  CHECK(ints(argsort(x)) == Ints{1, 2, 0, 0, 2, 1});
  CHECK(ints(argsort(x, 1, SortOrder::descending)) == Ints{0, 2, 1, 1, 0, 2});
  CHECK(sort(x).dtype() == x.dtype());
  CHECK(argsort(x).dtype() == i64);
  CHECK(ints(sort(tensor({true, false, true}))) == Ints{0, 1, 1});
}

TEST_CASE("NaN is greater than all numbers, and zeros keep their order and signs",
          "[eager][order]") {
  const Tensor x = tensor({nan_number, 1.0, 0.0, -inf, -0.0, inf, -nan_number, -0.0, 0.0});
  CHECK(ints(argsort(x)) == Ints{3, 2, 4, 7, 8, 1, 5, 0, 6});
  CHECK(ints(argsort(x, 0, SortOrder::descending)) == Ints{0, 6, 5, 1, 2, 4, 7, 8, 3});
  for (const DType dtype : {f16, bf16, f32, f64}) {
    for (const SortOrder order : {SortOrder::ascending, SortOrder::descending}) {
      const Tensor given = x.to(dtype);
      CHECK(same_bits(sort(given, 0, order), take(given, argsort(given, 0, order))));
    }
  }
}

TEST_CASE("long lines are sorted as short ones are, by any number of threads",
          "[eager][order][host]") {
  constexpr int64_t size = 200'000;
  const auto compute_all = [&] {
    std::vector<Tensor> out;
    for (const DType dtype : {u8, i32, i64, f32, f64}) {
      const Tensor x = random_values(dtype, {size}, 5);
      out.insert(out.end(), {sort(x), argsort(x), sort(x, 0, SortOrder::descending)});
      // Keys of 64 bits that have their upper bits in common.
      out.push_back(argsort(remainder(arange(size) * 7919, 65536) + (int64_t{1} << 50)));
    }
    return out;
  };
  check_same_on_threads(compute_all);
  const Tensor x = random_values(f64, {size}, 6) * 1e-9 + 1.0;
  Doubles want = doubles(x);
  std::ranges::stable_sort(want);
  CHECK(doubles(sort(x)) == want);
  const Tensor few = remainder(arange(size) * 7919, 100);
  Ints order(size);
  std::iota(order.begin(), order.end(), 0);
  const Ints keys = ints(few);
  std::ranges::stable_sort(order, {}, [&](int64_t i) { return keys[static_cast<std::size_t>(i)]; });
  CHECK(ints(argsort(few)) == order);
}

TEST_CASE("topk gives the first ones in order, the first of equal ones", "[eager][order]") {
  const Tensor x = tensor({{5, 1, 5, 3}, {2, 2, 2, 2}});
  const auto [values, indices] = topk(x, 2);
  CHECK(ints(values) == Ints{5, 5, 2, 2});
  CHECK(ints(indices) == Ints{0, 2, 0, 1});
  CHECK(ints(topk(x, 1, 0, SortOrder::ascending).indices) == Ints{1, 0, 1, 1});
  CHECK(topk(x, 0).values.shape() == Shape{2, 0});
  for (const DType dtype : {f32, f16, i64, i8}) {
    const Tensor long_line = random_values(dtype, {2, 5000}, 7);
    for (const int64_t k : {1, 5, 16, 17, 50, 600, 4999}) {
      for (const SortOrder order : {SortOrder::ascending, SortOrder::descending}) {
        CHECK(same_bits(topk(long_line, k, 1, order).indices,
                        slice(argsort(long_line, 1, order), 1, {0, k})));
      }
    }
  }
  CHECK(ints(kthvalue(x, 2).values) == Ints{3, 2});
  CHECK(kthvalue(x, 2, 1, keepdims).indices.shape() == Shape{2, 1});
}

TEST_CASE("searchsorted finds places among sorted elements", "[eager][order]") {
  const Tensor line = tensor({1, 3, 3, 5});
  const Tensor x = tensor({{0, 1, 3}, {4, 5, 6}});
  CHECK(ints(searchsorted(line, x)) == Ints{0, 0, 1, 3, 3, 4});
  CHECK(ints(searchsorted(line, x, Side::right)) == Ints{0, 1, 3, 3, 4, 4});
  CHECK(ints(searchsorted(line, 2.5)) == Ints{1});
  CHECK(ints(bucketize(x, line)) == ints(searchsorted(line, x)));
  CHECK(ints(searchsorted(tensor({1.0, nan_number}), tensor({nan_number, inf}))) == Ints{1, 1});
  const Tensor many = sort(random_values(f32, {999}, 8));
  CHECK(ints(searchsorted(many, many, Side::right)) == ints(arange(1, 1000)));
}

TEST_CASE("quantiles lie between elements, as those of NumPy", "[eager][order]") {
  const Tensor x = tensor({{1.0, 4.0, 2.0, 8.0}, {0.0, nan_number, 1.0, 2.0}});
  CHECK(median(x[0]).item<double>() == 3);
  CHECK(median(tensor({3, 1, 2})).item<float>() == 2);
  CHECK(median(x[0]).dtype() == f64);
  CHECK(std::isnan(median(x).item<double>()));
  CHECK(median(x, 0).shape() == Shape{4});
  CHECK(median(x, 1, keepdims).shape() == Shape{2, 1});
  CHECK(median(x, {}, keepdims).shape() == Shape{1, 1});
  CHECK(quantile(x[0], 0.25).item<double>() == 1.75);
  CHECK(quantile(x[0], 1.0).item<double>() == 8);
  const Tensor three = quantile(x, tensor({{0.0, 0.5, 0.75}}), 0);
  CHECK(three.shape() == Shape{1, 3, 4});
  CHECK(doubles(three.at({0, all_of_axis, 3})) == Doubles{2, 5, 6.5});
  CHECK(quantile(x, tensor({0.1, 0.2}), 1, keepdims).shape() == Shape{2, 2, 1});
  CHECK(std::isnan(quantile(x[0], tensor(1.5)).item<double>()));
  CHECK(quantile(tensor({inf, inf, 1.0}), 0.75).item<double>() == inf);
}

TEST_CASE("functions that sort are compiled and differentiated", "[jit][order]") {
  const auto f = [](const Tensor& x) {
    return sum(sort(x, 0) * cumsum(ones_like(x), 0)) + sum(topk(x, 3, 0).values) + median(x);
  };
  const auto g = compile([&](const Tensor& x) { return grad(f)(x); });
  const Tensor x = tensor({0.5, -1.0, 2.0, 0.25, 7.0});
  for (int i = 0; i < 3; ++i) CHECK(same_bits(g(x), grad(f)(x)));
  CHECK(doubles(g(x)) == Doubles{5, 1, 5, 2, 6});
}
