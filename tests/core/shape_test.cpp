#include "core/shape.h"

#include "core/error.h"

#include <catch2/catch.hpp>

using namespace nitinol;

TEST_CASE("contiguous strides count elements from the last dimension", "[core][shape]") {
  CHECK(strides_of({2, 3, 4}) == Strides{12, 4, 1});
  CHECK(strides_of({}) == Strides{});
  CHECK(is_contiguous({2, 3}, {3, 1}));
  CHECK(is_contiguous({2, 1, 3}, {3, 77, 1}));  // a size of 1 may have any stride
  CHECK(!is_contiguous({2, 3}, {1, 2}));
  CHECK(is_contiguous({0, 3}, {9, 9}));
}

TEST_CASE("shapes broadcast as in NumPy", "[core][shape]") {
  CHECK(broadcast_shapes("add", {4, 1}, {3}) == Shape{4, 3});
  CHECK(broadcast_shapes("add", {}, {2, 2}) == Shape{2, 2});
  CHECK(broadcast_shapes("add", {0}, {1}) == Shape{0});
  CHECK_THROWS_WITH(broadcast_shapes("add", {4, 3}, {4}),
                    Catch::Contains("add") && Catch::Contains("[4, 3]") && Catch::Contains("[4]"));
  CHECK(broadcast_strides({3, 1}, {1, 1}, {2, 3, 4}) == Strides{0, 1, 0});
}

TEST_CASE("axes count from either end and name the op when they are wrong", "[core][shape]") {
  CHECK(normalize_axis("sum", -1, 3) == 2);
  CHECK(normalize_axes("sum", {-1, 0}, 3) == Dims{0, 2});
  CHECK(normalize_axes("sum", {}, 2) == Dims{0, 1});
  CHECK_THROWS_WITH(normalize_axis("sum", 3, 3),
                    Catch::Contains("sum") && Catch::Contains("axis 3"));
  CHECK_THROWS_WITH(normalize_axes("sum", {1, -1}, 2), Catch::Contains("repeated"));
  CHECK_THROWS_WITH(normalize_axis("sum", 0, 0), Catch::Contains("no dimensions"));
}

TEST_CASE("rank 8 is the limit and says so", "[core][shape]") {
  Dims dims = Dims::filled(8, 2);
  CHECK(element_count(dims) == 256);
  CHECK_THROWS_AS(dims.push_back(1), Error);
  dims.erase(0);
  dims.insert(0, 5);
  CHECK(dims == Dims{5, 2, 2, 2, 2, 2, 2, 2});
}
