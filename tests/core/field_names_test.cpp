// Field names as the source writes them.
#include "core/field_names.h"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

using namespace nitinol::reflection;

namespace {

struct Inner {
  std::shared_ptr<int> weight_2;
};
struct Outer {
  Inner first;
  std::vector<Inner> second;
  double last = 0;
};

}  // namespace

TEST_CASE("fields have their names", "[core]") {
  CHECK(field_name<Outer, 0>() == "first");
  CHECK(field_name<Outer, 2>() == "last");
  CHECK(field_name<Inner, 0>() == "weight_2");
  std::string all;
  const Outer value;
  for_each_named_field(value,
                       [&](std::string_view name, const auto&) { all += std::string(name) + " "; });
  CHECK(all == "first second last ");
}
