#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
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

/// The share of a gamma distribution of an integer concentration that is below x.
double gamma_below(int concentration, double x) {
  double term = std::exp(-x), above = term;
  for (int k = 1; k < concentration; ++k) above += term *= x / k;
  return 1 - above;
}

/// How well numbers of a rate agree with Poisson's, those of few expected ones put together.
double poisson_deviation(const Tensor& x, double rate) {
  const auto first = static_cast<int64_t>(std::max(rate - 3 * std::sqrt(rate), 0.0));
  const auto last = static_cast<int64_t>(rate + 3 * std::sqrt(rate) + 2);
  std::vector<double> found(static_cast<std::size_t>(last - first + 1)), expected(found.size());
  for (const int64_t k : x.to_vector<int64_t>())
    ++found[static_cast<std::size_t>(std::clamp(k, first, last) - first)];
  for (int64_t k = 0; k < last + 1000; ++k) {
    const auto number = static_cast<double>(k);
    const double share = std::exp(number * std::log(rate) - rate - std::lgamma(number + 1));
    expected[static_cast<std::size_t>(std::clamp(k, first, last) - first)] +=
        share * static_cast<double>(x.size());
  }
  return deviation(found, expected);
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
  std::vector<double> found = numbers(bincount(drawn, {}, 0, 5)), expected;
  CHECK(found[2] == 0);
  found.erase(found.begin() + 2);
  for (const double share : {0.1, 0.4, 0.2, 0.3}) expected.push_back(share * count);
  CHECK(deviation(found, expected) < 4);
  // One at a time of those that are left: first of all with their shares.
  const Tensor orders = categorical(expand(weights, {count, 5}), 5, false, generator);
  found = numbers(bincount(orders.at({all_of_axis, 0}).get(), {}, 0, 5));
  found.erase(found.begin() + 2);
  CHECK(deviation(found, expected) < 4);
  CHECK(all(orders.at({all_of_axis, 4}).get() == 2).item<bool>());
  CHECK(all(sort(orders) == arange(5)).item<bool>());
  const auto often =
      static_cast<double>(sum(bernoulli(full({count}, 0.3), generator)).item<int64_t>());
  CHECK(std::abs(often - 0.3 * count) < 4 * std::sqrt(0.21 * count));
}

TEST_CASE("normal numbers are truncated", "[eager][distributions]") {
  const Generator generator(8);
  const auto below = [](double x) { return std::erfc(-x / std::sqrt(2.0)) / 2; };
  for (const DType dtype : {f32, f64}) {
    const auto check = [&](double low, double high) {
      const double first = below((low - 1) / 2), last = below((high - 1) / 2);
      const Tensor x = truncated_normal({count}, low, high, 1, 2, dtype, generator);
      CHECK(x.dtype() == dtype);
      CHECK(min(x).item<double>() >= low);
      CHECK(max(x).item<double>() <= high);
      CHECK(distance(x, [&](double v) { return (below((v - 1) / 2) - first) / (last - first); }) <
            1.95);
    };
    check(-1, 2);
    check(5, 9);
    check(-INFINITY, 0.5);
  }
  CHECK(truncated_normal({0}).size() == 0);
  CHECK(truncated_normal({}, -2, 2, 0, 1, bf16).dtype() == bf16);
}

TEST_CASE("parts are chosen", "[eager][distributions]") {
  const Generator generator(9);
  const std::vector<double> tenth(10, count / 10.0);
  const auto counts = [](const Tensor& x) { return numbers(bincount(flatten(x), {}, 0, 10)); };
  CHECK(deviation(counts(choice(10, {2, count / 2}, true, {}, 0, generator)), tenth) < 4);
  const Tensor weights = tensor({1.0, 2.0, 3.0, 4.0});
  std::vector<double> found = counts(choice(4, {count}, true, weights, 0, generator));
  found.resize(4);
  CHECK(deviation(found, {count * 0.1, count * 0.2, count * 0.3, count * 0.4}) < 4);
  CHECK(all(sort(choice(10, {10}, false, {}, 0, generator)) == arange(10)).item<bool>());
  const Tensor rare = tensor({0.0, 1.0, 0.0, 2.0});
  CHECK(all(choice(4, {100}, true, rare, 0, generator) % 2 == 1).item<bool>());
  const Tensor ordered = choice(4, {3}, false, rare, 0, generator);
  CHECK(sum(slice(ordered, 0, {0, 2})).item<int64_t>() == 4);

  const Tensor x = reshape(arange(12), {3, 4});
  const Tensor columns = choice(x, {2, 5}, true, {}, -1, generator);
  CHECK(columns.shape() == Shape{3, 2, 5});
  CHECK(all(columns % 4 == columns.at({Range{0, 1}}) % 4).item<bool>());
  CHECK(choice(x, {2}, false).shape() == Shape{2, 4});
  CHECK(choice(zeros({0, 2}), {0}).shape() == Shape{0, 2});
  CHECK_THROWS_WITH(choice(0, {1}), Catch::Contains("at least 1, got 0"));
  CHECK_THROWS_WITH(choice(3, {4}, false), Catch::Contains("at least 4, got 3"));
  CHECK_THROWS_WITH(choice(3, {4}, true, ones({2})), Catch::Contains("shape [3]"));
  CHECK_THROWS_WITH(choice(2.5, {1}), Catch::Contains("an integer"));
  CHECK_THROWS_AS(choice(x, {1}, true, {}, 2), Error);
  CHECK_THROWS_AS(choice(tensor(3), {1}), Error);
}

TEST_CASE("gamma, beta and Poisson numbers are what they are called",
          "[eager][distributions][no-isa]") {
  const Generator generator(10);
  for (const DType dtype : {f32, f64}) {
    CHECK(distance(gamma({count}, 3, 2, dtype, generator),
                   [](double x) { return gamma_below(3, 2 * x); }) < 1.95);
    CHECK(distance(gamma({count}, 1, 1, dtype, generator),
                   [](double x) { return gamma_below(1, x); }) < 1.95);
    CHECK(distance(gamma({count}, 0.5, 1, dtype, generator),  // half the square of a normal number
                   [](double x) { return std::erf(std::sqrt(x)); }) < 1.95);
    CHECK(distance(beta({count}, 2, 1, dtype, generator), [](double x) { return x * x; }) < 1.95);
    CHECK(distance(beta({count}, 0.5, 0.5, dtype, generator),
                   [](double x) { return std::asin(std::sqrt(x)) * 0.63661977236758134; }) < 1.95);
  }
  for (const double rate : {0.3, 4.0, 9.9, 10.0, 25.0, 400.0}) {
    CAPTURE(rate);
    CHECK(poisson_deviation(poisson(full({count}, rate, f64), generator), rate) < 4);
  }
  const double inf = std::numeric_limits<double>::infinity();
  const Tensor odd = poisson(tensor({0.0, -1.0, std::nan(""), inf, 1e9}), generator);
  CHECK(odd.dtype() == i64);
  const std::vector<int64_t> drawn = odd.to_vector<int64_t>();
  CHECK((drawn[0] == 0 && drawn[1] == -1 && drawn[2] == -1 && drawn[3] == INT64_MAX));
  CHECK(std::abs(static_cast<double>(drawn[4]) - 1e9) < 5 * std::sqrt(1e9));
  CHECK(poisson(zeros({0, 3})).shape() == Shape{0, 3});
  CHECK(gamma({}, 1e-3).shape() == Shape{});
  const Shape deep = Dims::filled(max_rank, 1);
  CHECK(poisson(full(deep, 20)).shape() == deep);
  CHECK(beta(deep, 1, 2).shape() == deep);
  CHECK_THROWS_WITH(gamma({2}, 0), Catch::Contains("concentration"));
  CHECK_THROWS_WITH(gamma({2}, 1, -1), Catch::Contains("rate"));
  CHECK_THROWS_WITH(beta({2}, 1, std::nan("")), Catch::Contains("more than 0"));
  CHECK_THROWS_WITH(gamma({2}, 1, 1, i32), Catch::Contains("a floating one"));
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
  // Of several buckets: where a number comes, which comes first, and how often its neighbour
  // follows.
  constexpr int64_t size = 5000, draws = 4000, parts = 20;
  std::vector<double> places(parts), firsts(parts), even(parts, 1.0 * draws / parts);
  double follows = 0;
  for (int64_t i = 0; i < draws; ++i) {
    const Tensor order = permutation(size, generator);
    const std::vector<int64_t> p = order.to_vector<int64_t>();
    const auto place = std::ranges::find(p, 2345) - p.begin();
    ++places[static_cast<std::size_t>(place * parts / size)];
    ++firsts[static_cast<std::size_t>(p[0] * parts / size)];
    for (std::size_t at = 1; at < p.size(); ++at) follows += p[at] == p[at - 1] + 1 ? 1 : 0;
  }
  CHECK(deviation(places, even) < 4);
  CHECK(deviation(firsts, even) < 4);
  CHECK(std::abs(follows / draws - 1) < 4 / std::sqrt(draws));
  const Tensor x = reshape(arange(12), {3, 4});
  CHECK(all(sort(shuffle(x, 1, generator)) == x).item<bool>());
}

TEST_CASE("what is drawn is the same compiled", "[jit][distributions]") {
  const Generator eager(7), compiled_one(7);
  const auto step = [](const Generator& g) {
    return uniform({3000}, 1, 2, f32, g) + cast(categorical(ones({10}), 3000, true, g), f32) +
           cast(permutation(3000, g) + choice(9, {3000}, true, {}, 0, g), f32) +
           truncated_normal({3000}, -1, 2, 0, 1, f32, g) + gamma({3000}, 0.7, 1, f32, g) +
           beta({3000}, 2, 3, f32, g) + cast(poisson(arange(3000), g), f32);
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
  CHECK_THROWS_WITH(truncated_normal({2}, 1, 1), Catch::Contains("low < high"));
  CHECK_THROWS_WITH(truncated_normal({2}, 7, 8), Catch::Contains("once in 2 million"));
  CHECK_THROWS_WITH(truncated_normal({2}, 0, 1, 0, 0), Catch::Contains("deviation"));
  CHECK_THROWS_WITH(permutation(-1), Catch::Contains("at least 0"));
  CHECK_THROWS_WITH(categorical(ones({3}), 4, false), Catch::Contains("4 of 3"));
  CHECK_THROWS_WITH(categorical(ones({2, 0})), Catch::Contains("at least one"));
}
