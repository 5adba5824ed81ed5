#include "nitinol.h"
#include "tests/ints.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace nitinol;
using nitinol::test::ints;
using Ints = std::vector<int64_t>;

TEST_CASE("unique elements, with where and how often they are", "[eager][sets]") {
  const Tensor x = tensor({{3, 1, 3}, {2, 1, 1}});
  const Unique all = unique_all(x);
  CHECK(ints(all.values) == Ints{1, 2, 3});
  CHECK(ints(all.indices) == Ints{1, 3, 0});
  CHECK(ints(all.inverse_indices) == Ints{2, 0, 2, 1, 0, 0});
  CHECK(all.inverse_indices.shape() == x.shape());
  CHECK(ints(all.counts) == Ints{3, 1, 2});
  CHECK(ints(unique_values(x)) == Ints{1, 2, 3});
  CHECK(ints(unique_counts(x).counts) == Ints{3, 1, 2});
  CHECK(ints(unique_inverse(x).inverse_indices) == Ints{2, 0, 2, 1, 0, 0});
  CHECK(all.values.dtype() == x.dtype());
  const double nan_number = std::numeric_limits<double>::quiet_NaN();
  CHECK(ints(unique_counts(tensor({nan_number, 0.0, -0.0, nan_number})).counts) == Ints{2, 1, 1});
  const Unique none = unique_all(zeros({0, 2}));
  CHECK((none.values.size() == 0 && none.counts.size() == 0 && none.indices.size() == 0));
  CHECK(none.inverse_indices.shape() == Shape{0, 2});
  CHECK(ints(unique_all(tensor(5)).counts) == Ints{1});
}

TEST_CASE("isin finds elements in others", "[eager][sets]") {
  const Tensor x = tensor({{1, 5}, {7, 2}});
  CHECK(ints(isin(x, tensor({2, 1, 9}))) == Ints{1, 0, 0, 1});
  CHECK(ints(isin(x, 7)) == Ints{0, 0, 1, 0});
  CHECK(ints(isin(x, zeros({0}, i32))) == Ints{0, 0, 0, 0});
  CHECK(isin(x, tensor({1.5})).dtype() == boolean);
  CHECK(ints(isin(tensor({NAN, 1.0}), tensor({NAN, 1.0}))) == Ints{0, 1});
}

TEST_CASE("bincount and histogram count", "[eager][sets]") {
  CHECK(ints(bincount(tensor({1, 3, 1}))) == Ints{0, 2, 0, 1});
  for (const Integer minlength : {0, 2, 9})
    CHECK(ints(bincount(tensor({1, 3, 1}), {}, minlength, 6)) == Ints{0, 2, 0, 1, 0, 0});
  CHECK(ints(bincount(tensor({1, 3, 1}), {}, 6)) == Ints{0, 2, 0, 1, 0, 0});
  CHECK(ints(bincount(tensor({1, 3, 1}), {}, 2)) == Ints{0, 2, 0, 1});
  CHECK_THROWS_AS(bincount(tensor({1}), {}, -1), Error);
  CHECK(bincount(tensor({1, 0}), tensor({0.5, 2.0})).to_vector<double>() ==
        std::vector<double>{2, 0.5});
  CHECK(bincount(zeros({0}, i64)).size() == 0);
  CHECK_THROWS_WITH(bincount(tensor({-1, 2})), Catch::Contains("bincount: an integer is negative"));
  CHECK_THROWS_AS(bincount(tensor({-1, 2}), {}, 0, 3), Error);
  CHECK_THROWS_AS(bincount(tensor({1, 3}), {}, 0, 3), Error);
  const Histogram h = histogram(tensor({0.0, 0.5, 1.0, 2.0, -1.0, 3.0, NAN}), 2, 0, 2);
  CHECK(ints(h.counts) == Ints{2, 2});
  CHECK(h.edges.to_vector<double>() == std::vector<double>{0, 1, 2});
  CHECK_THROWS_WITH(histogram(tensor({1.0}), 0, 0, 1), Catch::Contains("bins"));
  CHECK_THROWS_WITH(histogram(tensor({1.0}), 3, 1, 1), Catch::Contains("low < high"));
}
