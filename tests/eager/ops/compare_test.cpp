// Comparisons of integers with numbers that their dtype does not hold: exact, as in NumPy 2.
#include "eager/ops/compare.h"

#include "tests/jit/calls.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <limits>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using Compare = Tensor (*)(const Argument&, const Argument&);

struct Comparison {
  std::string_view name;
  Compare compare;
  bool (*expected)(long double, long double);
};

const std::vector<Comparison> comparisons = {
    {"eq", eq, [](long double a, long double b) { return a == b; }},
    {"ne", ne, [](long double a, long double b) { return a != b; }},
    {"lt", lt, [](long double a, long double b) { return a < b; }},
    {"le", le, [](long double a, long double b) { return a <= b; }},
    {"gt", gt, [](long double a, long double b) { return a > b; }},
    {"ge", ge, [](long double a, long double b) { return a >= b; }},
};

constexpr int64_t most = std::numeric_limits<int64_t>::max();

/// Numbers at and beyond the bounds of all dtypes, and what their low bits are.
std::vector<Scalar> numbers() {
  std::vector<Scalar> out = {0, 1, -1, 300, 356, -300, most, -most - 1, true, 0.5, -0.25, 1e18};
  for (const int bits : {7, 8, 15, 16, 31, 32}) {
    const int64_t bound = int64_t{1} << bits;
    for (const int64_t number : {bound - 1, bound, bound + 1, -bound, -bound - 1}) {
      out.emplace_back(number);
      out.emplace_back(static_cast<double>(number));
      out.emplace_back(static_cast<double>(number) + 0.25);
    }
  }
  return out;
}

/// What both sides hold, exactly.
long double exact(const Scalar& number) {
  if (number.kind() == Scalar::Kind::real) return number.to_double();
  return static_cast<long double>(number.to_integer());
}

std::vector<bool> expected_of(const Comparison& comparison, const Tensor& x, const Scalar& number,
                              bool is_left) {
  std::vector<bool> out;
  for (const int64_t element : x.to(i64).to_vector<int64_t>()) {
    const auto value = static_cast<long double>(element);
    out.push_back(is_left ? comparison.expected(exact(number), value)
                          : comparison.expected(value, exact(number)));
  }
  return out;
}

}  // namespace

TEST_CASE("integers compare exactly with every number", "[eager][compare][jit]") {
  for (const DType dtype : {boolean, u8, i8, i16, i32, i64}) {
    Tensor x = edge_values(dtype);
    if (dtype != boolean && dtype != i64) {
      const int64_t high = (int64_t{1} << (8 * size_of(dtype) - (is_unsigned(dtype) ? 0 : 1))) - 1;
      x = concat({x, full({1}, high, dtype)});
    }
    for (const Comparison& comparison : comparisons) {
      const auto right = [&](const Tensor& t, const Scalar& s) { return comparison.compare(t, s); };
      const auto left = [&](const Tensor& t, const Scalar& s) { return comparison.compare(s, t); };
      const auto compiled_right = compile(right, {.check = Check::never});
      const auto compiled_left = compile(left, {.check = Check::never});
      for (const Scalar& number : numbers()) {
        INFO(name_of(dtype) << ' ' << comparison.name << ' ' << number.to_double());
        const std::vector<bool> of_right = expected_of(comparison, x, number, false);
        const std::vector<bool> of_left = expected_of(comparison, x, number, true);
        CHECK(right(x, number).to_vector<bool>() == of_right);
        CHECK(left(x, number).to_vector<bool>() == of_left);
        CHECK(compiled_right(x, number).to_vector<bool>() == of_right);
        CHECK(compiled_left(x, number).to_vector<bool>() == of_left);
      }
      CHECK(compiled_right.explain().plan_calls > 20);
    }
  }
}

TEST_CASE("unsigned and signed numbers compare exactly, known or not", "[eager][compare][jit]") {
  const std::vector<uint64_t> large = {0, 1, uint64_t{INT64_MAX}, uint64_t{1} << 63, ~uint64_t{0}};
  const std::vector<int64_t> small = {INT64_MIN, -1, 0, 1, INT64_MAX};
  const auto check = [](const Tensor& x, const auto& elements, const auto& number) {
    for (const Comparison& comparison : comparisons) {
      const auto both = [&](const Tensor& t, const Scalar& n) {
        return std::vector<Tensor>{comparison.compare(t, n), comparison.compare(n, t)};
      };
      std::vector<bool> left, right;
      const auto n = static_cast<long double>(number);  // which has 64 bits
      for (const auto element : elements) {
        left.push_back(comparison.expected(static_cast<long double>(element), n));
        right.push_back(comparison.expected(n, static_cast<long double>(element)));
      }
      INFO(comparison.name << ' ' << number);
      const auto compiled = compile(both, {.check = Check::never});
      for (int call = 0; call < 4; ++call) {
        const std::vector<Tensor> got = call == 0 ? both(x, number) : compiled(x, Scalar(number));
        CHECK(got[0].to_vector<bool>() == left);
        CHECK(got[1].to_vector<bool>() == right);
      }
    }
  };
  for (const int64_t number : small) check(from_span<uint64_t>(large, {5}), large, number);
  for (const uint64_t number : large) {
    check(from_span<uint64_t>(large, {5}), large, number);
    check(from_span<int64_t>(small, {5}), small, number);
  }
  // What is made of such a number may be small again.
  const Tensor one = -Scalar(~uint64_t{0});
  CHECK((tensor({0, 1, 2}, i32) < one).to_vector<bool>() == std::vector<bool>{true, false, false});
}

TEST_CASE("a literal beyond the dtype is compared exactly when compiled", "[eager][compare][jit]") {
  const auto f = [](const Tensor& u) {
    return std::vector<Tensor>{u > -1, u < 300, u == 356, 300 >= u, u != -156};
  };
  const auto g = compile(f);
  const Tensor u = full({3}, 100, u8);
  const std::vector<Tensor> got = settle(g, u);
  const std::vector<bool> expected = {true, true, false, true, true};
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(all(got[i]).item<bool>() == expected[i]);
}
