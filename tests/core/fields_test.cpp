// Counting and naming the fields of plain structs.
#include "core/fields.h"

#include "core/field_names.h"
#include "core/reflect.h"

#include <catch2/catch.hpp>

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

struct Empty {};
struct Arrays {  // an internal error of g++ 12 in Boost.PFR's own count
  Tensor first;
  std::array<Tensor, 2> two;
  std::array<std::array<Variable, 2>, 3> six;
  int number = 0;
};
struct NoDefault {
  explicit NoDefault(int value) : number(value) {}
  int number;
};
struct Required {
  NoDefault must;
  std::array<Tensor, 3> three;
  bool flag = false;
};
/// As a run of a training program: much that has a default, and one that has none.
struct RequiredLate {
  std::array<Tensor, 3> three;
  std::vector<int64_t> list;
  Variable counter = Variable(ones({1}));
  NoDefault must;
  std::array<char, 4096> large = {};
  bool flag = false;
};
struct RequiredLast {
  std::array<Tensor, 2> two;
  NoDefault must;
};
struct Mixed {
  Tensor a;
  Arrays b;
  std::optional<Variable> c;
  std::vector<Tensor> d;
  bool e = false, f = false;
  std::function<void()> g;
  std::unique_ptr<int> h;
  std::string i;
  HostValue<bool> j = true;
};

struct LeafCounter {
  int tensors = 0, variables = 0;
  void tensor(const Tensor&) { ++tensors; }
  void variable(const Variable&) { ++variables; }
  void scalar(const Scalar&) {}
  void fixed(uint64_t) {}
};

}  // namespace

TEST_CASE("fields of structs are counted, arrays of tensors as one", "[core]") {
  STATIC_REQUIRE(reflection::field_count<Empty> == 0);
  STATIC_REQUIRE(reflection::field_count<Arrays> == 4);
  STATIC_REQUIRE(reflection::field_count<const Arrays> == 4);
  STATIC_REQUIRE(reflection::field_count<Required> == 3);
  STATIC_REQUIRE(reflection::field_count<RequiredLate> == 6);
  STATIC_REQUIRE(reflection::field_count<RequiredLast> == 2);
  STATIC_REQUIRE(reflection::field_count<Mixed> == 10);
  STATIC_REQUIRE(reflection::field_name<Mixed, 2>() == "c");
  STATIC_REQUIRE(reflection::field_name<Mixed, 9>() == "j");
  STATIC_REQUIRE(reflection::contains<Variable, Arrays>());
  STATIC_REQUIRE(reflection::contains<Tensor, Required>());
  STATIC_REQUIRE(!reflection::contains<Scalar, Arrays>());
}

TEST_CASE("fields are references to what the struct holds", "[core]") {
  Arrays arrays;
  reflection::field<3>(arrays) = 7;
  CHECK(arrays.number == 7);
  LeafCounter counter;
  visit_leaves(arrays, counter);
  CHECK(counter.tensors == 3);
  CHECK(counter.variables == 6);
}
