#include "nitinol.h"
#include "tests/ints.h"
#include "tests/on_threads.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

using namespace nitinol;
using nitinol::test::ints;
using namespace nitinol::test;
using Ints = std::vector<int64_t>;

namespace {

/// The gradients by x and by values of the weighted sum of what arrives.
std::pair<std::vector<double>, std::vector<double>> slopes(const Tensor& x, const Tensor& values,
                                                           const Tensor& places, Arrival arrival) {
  const Tensor weights = cast(arange(1, x.size() + 1), f64);
  const auto by_x =
      grad([&](const Tensor& t) { return sum(scatter(t, places, values, arrival) * weights); })(x);
  const auto by_values =
      grad([&](const Tensor& t) { return sum(scatter(x, places, t, arrival) * weights); })(values);
  return {by_x.to_vector<double>(), by_values.to_vector<double>()};
}

}  // namespace

TEST_CASE("values arrive where indices say, in their order", "[eager][scatter]") {
  const Tensor x = tensor({1, 2, 3, 4}), places = tensor({1, 3, 1}), values = tensor({5, 1, 7});
  CHECK(ints(scatter(x, places, values)) == Ints{1, 7, 3, 1});
  CHECK(ints(scatter(x, places, values, Arrival::add)) == Ints{1, 14, 3, 5});
  CHECK(ints(scatter(x, places, values, Arrival::multiply)) == Ints{1, 70, 3, 4});
  CHECK(ints(scatter(x, places, values, Arrival::maximum)) == Ints{1, 7, 3, 4});
  CHECK(ints(scatter(x, places, values, Arrival::minimum)) == Ints{1, 2, 3, 1});
  CHECK(ints(scatter(x, tensor({-1}), 9)) == Ints{1, 2, 3, 9});
  CHECK(ints(scatter(tensor({{1, 2}, {3, 4}}), tensor({1}), tensor({8, 9}))) == Ints{1, 2, 8, 9});
  CHECK(ints(scatter(tensor({false, true}), tensor({0}), true)) == Ints{1, 1});
  CHECK_THROWS_WITH(scatter(x, tensor({4}), 1), Catch::Contains("index 4 for an axis of 4"));
  CHECK_THROWS_WITH(scatter(x, tensor({0.5}), 1), Catch::Contains("integers"));
  CHECK_THROWS_AS(scatter(x, tensor({0, 1}), tensor({1, 2, 3})), Error);
}

TEST_CASE("values arrive along an axis", "[eager][scatter]") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(ints(scatter_along(x, 1, tensor({{0, 2}, {1, 1}}), tensor({{7, 8}, {9, 10}}))) ==
        Ints{7, 2, 8, 4, 10, 6});
  CHECK(ints(scatter_along(x, 0, tensor({{1, 0, 1}}), 9, Arrival::add)) ==
        Ints{1, 11, 3, 13, 5, 15});
  CHECK(ints(scatter_along(x, 1, tensor({{-1}}), 0)) == Ints{1, 2, 0, 4, 5, 0});
  CHECK(ints(scatter_along(x, 1, argsort(x, 1, SortOrder::descending), tensor({{1, 2, 3}}))) ==
        Ints{3, 2, 1, 3, 2, 1});
  CHECK_THROWS_WITH(scatter_along(x, 1, tensor({{3}}), 0), Catch::Contains("index 3 for an axis"));
  CHECK_THROWS_WITH(scatter_along(x, 1, tensor({0}), 0), Catch::Contains("equal sizes, or 1"));
}

TEST_CASE("gradients of what arrives, with ties and zeros", "[eager][scatter]") {
  using Doubles = std::vector<double>;
  const Tensor x = tensor({2.0, 0.0, 3.0}), places = tensor({0, 1, 0, 1});
  const Tensor values = tensor({5.0, 4.0, 2.0, 0.0});
  const auto set = slopes(x, values, places, Arrival::set);
  CHECK((set.first == Doubles{0, 0, 3} && set.second == Doubles{0, 0, 1, 2}));
  const auto add = slopes(x, values, places, Arrival::add);
  CHECK((add.first == Doubles{1, 2, 3} && add.second == Doubles{1, 2, 1, 2}));
  const auto most = slopes(x, values, places, Arrival::maximum);
  CHECK((most.first == Doubles{0, 0, 3} && most.second == Doubles{1, 2, 0, 0}));
  const auto least = slopes(x, values, places, Arrival::minimum);
  CHECK((least.first == Doubles{0.5, 1, 3} && least.second == Doubles{0, 0, 0.5, 1}));
  const auto times = slopes(x, values, places, Arrival::multiply);
  CHECK((times.first == Doubles{10, 0, 3} && times.second == Doubles{4, 0, 10, 0}));
  const auto one_zero = slopes(tensor({2.0, 6.0, 3.0}), values, places, Arrival::multiply);
  CHECK((one_zero.first == Doubles{10, 0, 3} && one_zero.second == Doubles{4, 0, 10, 48}));
}

TEST_CASE("threads do not change what arrives", "[eager][scatter]") {
  const Tensor x = random_values(f32, {50, 2000}, 1), values = random_values(f32, {300, 2000}, 2);
  const Tensor places = randint(-50, 50, {300});
  check_same_on_threads([&] {
    return std::vector<Tensor>{scatter(x, places, values), scatter(x, places, values, Arrival::add),
                               scatter(x, places, values, Arrival::multiply),
                               scatter(permute(x, {1, 0}), places, 1.0, Arrival::maximum)};
  });
}
