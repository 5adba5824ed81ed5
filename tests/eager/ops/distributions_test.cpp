#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace nitinol;

namespace {

constexpr int64_t count = 20'000;

std::vector<double> numbers(const Tensor& x) {
  return x.to(f64).to_vector<double>();
}

/// sqrt(n) times the largest distance between the sample's and the true distribution function:
/// above 1.95 by chance once in a thousand times (Kolmogorov and Smirnov).
template <class Cdf>
double distance(const Tensor& x, Cdf cdf) {
  std::vector<double> sorted = numbers(x);
  std::ranges::sort(sorted);
  const auto n = static_cast<double>(sorted.size());
  double most = 0;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    const double at = cdf(sorted[i]);
    most = std::max({most, at - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - at});
  }
  return most * std::sqrt(n);
}

/// The chi-square statistic less its degrees of freedom, in its standard deviations.
double deviation(const std::vector<double>& found, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const double off = found[i] - expected[i];
    sum += off * off / expected[i];
  }
  const auto freedom = static_cast<double>(found.size() - 1);
  return (sum - freedom) / std::sqrt(2 * freedom);
}

}  // namespace

TEST_CASE("continuous distributions are what they are called", "[eager][distributions]") {
  const Generator generator(3);
  for (const DType dtype : {f32, f64}) {
    CHECK(distance(uniform({count}, -2, 3, dtype, generator),
                   [](double x) { return (x + 2) / 5; }) < 1.95);
    CHECK(distance(normal({count}, 1, 2, dtype, generator),
                   [](double x) { return std::erfc((1 - x) / 2 / std::sqrt(2.0)) / 2; }) < 1.95);
    CHECK(distance(exponential({count}, 4, dtype, generator),
                   [](double x) { return 1 - std::exp(-4 * x); }) < 1.95);
  }
  const Tensor narrow = uniform({count}, 1, 1 + 0x1p-22, f32, generator);
  CHECK(max(narrow).item<float>() < 1 + 0x1p-22F);
  CHECK(min(narrow).item<float>() == 1);
  CHECK(uniform({3}, 0, 1, bf16, generator).dtype() == bf16);
}

TEST_CASE("discrete distributions are what they are called", "[eager][distributions]") {
  const Generator generator(4);
  const std::vector<double> shares = {0.1, 0.4, 0, 0.2, 0.3};
  const Tensor weights = tensor(shares) * 7.0;
  const Tensor drawn = categorical(weights, count, true, generator);
  CHECK(drawn.shape() == Shape{count});
  std::vector<double> found = numbers(bincount(drawn, {}, 5)), expected;
  CHECK(found[2] == 0);
  found.erase(found.begin() + 2);
  for (const double share : {0.1, 0.4, 0.2, 0.3}) expected.push_back(share * count);
  CHECK(deviation(found, expected) < 4);
  // One at a time of those that are left: first of all with their shares.
  const Tensor orders = categorical(expand(weights, {count, 5}), 5, false, generator);
  found = numbers(bincount(orders.at({all_of_axis, 0}).get(), {}, 5));
  found.erase(found.begin() + 2);
  CHECK(deviation(found, expected) < 4);
  CHECK(all(orders.at({all_of_axis, 4}).get() == 2).item<bool>());
  CHECK(all(sort(orders) == arange(5)).item<bool>());
  const auto often =
      static_cast<double>(sum(bernoulli(full({count}, 0.3), generator)).item<int64_t>());
  CHECK(std::abs(often - 0.3 * count) < 4 * std::sqrt(0.21 * count));
}

TEST_CASE("permutations are permutations, each as likely", "[eager][distributions]") {
  const Generator generator(5);
  CHECK(all(sort(permutation(1000, generator)) == arange(1000)).item<bool>());
  CHECK(permutation(0).size() == 0);
  std::vector<double> found(24), expected(24, 4000.0 / 24);
  for (int i = 0; i < 4000; ++i) {
    const std::vector<int64_t> p = permutation(4, generator).to_vector<int64_t>();
    std::size_t number = 0;
    for (std::size_t a = 0; a < 4; ++a) {
      const auto smaller = std::count_if(p.begin() + static_cast<std::ptrdiff_t>(a), p.end(),
                                         [&](int64_t x) { return x < p[a]; });
      number = number * (4 - a) + static_cast<std::size_t>(smaller);
    }
    ++found[number];
  }
  CHECK(deviation(found, expected) < 4);
  const Tensor x = reshape(arange(12), {3, 4});
  CHECK(all(sort(shuffle(x, 1, generator)) == x).item<bool>());
}

TEST_CASE("what is drawn is the same compiled", "[jit][distributions]") {
  const Generator eager(7), compiled_one(7);
  const auto step = [](const Generator& g) {
    return uniform({3000}, 1, 2, f32, g) + cast(categorical(ones({10}), 3000, true, g), f32) +
           cast(permutation(3000, g), f32);
  };
  const auto compiled = compile([&] { return step(compiled_one); });
  for (int i = 0; i < 4; ++i) CHECK(same_bits(compiled(), step(eager)));
  CHECK(compiled.explain().plan_calls >= 1);
}

TEST_CASE("distributions say what they cannot draw", "[eager][distributions]") {
  CHECK_THROWS_WITH(uniform({2}, 1, 1), Catch::Contains("low < high"));
  CHECK_THROWS_WITH(uniform({2}, 0, 1, i32), Catch::Contains("a floating one"));
  CHECK_THROWS_WITH(normal({2}, 0, -1), Catch::Contains("deviation"));
  CHECK_THROWS_WITH(exponential({2}, 0), Catch::Contains("rate"));
  CHECK_THROWS_WITH(permutation(-1), Catch::Contains("at least 0"));
  CHECK_THROWS_WITH(categorical(ones({3}), 4, false), Catch::Contains("4 of 3"));
  CHECK_THROWS_WITH(categorical(ones({2, 0})), Catch::Contains("at least one"));
}
