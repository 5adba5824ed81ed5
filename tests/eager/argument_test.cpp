// What formulas may contain beside tensors: conditions, Scalars, Variables, parts, host integers.
#include "eager/argument.h"

#include "eager/promotion.h"
#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <span>
#include <sstream>
#include <string>
#include <type_traits>
#include <vector>

using namespace nitinol;

// What users compile with: a std::size_t as index needs no cast.
#pragma GCC diagnostic error "-Wsign-conversion"
#pragma GCC diagnostic error "-Wconversion"

TEST_CASE("conditions are joined by && and ||, and negated by !", "[eager]") {
  const Tensor x = arange(5);
  const Tensor within = (x > 1) && (x < 4);
  CHECK(same_bits(within, logical_and(x > 1, x < 4)));
  CHECK(same_bits((x < 1) || (x > 3), logical_or(x<1, x> 3)));
  CHECK(same_bits(!within, logical_not(within)));
  const Variable kept(within);
  CHECK(same_bits((x > 2) && kept, logical_and(x > 2, within)));
  CHECK(same_bits(kept || (x > 2), logical_or(x > 2, within)));
  CHECK(same_bits(kept && kept, within));
  CHECK(same_bits(!kept, !within));
  CHECK(same_bits(x.at({Range{1, 3}}) && kept.at({Range{2, 4}}), tensor({true, true})));
  CHECK(same_bits(Scalar(0) || x, x != 0));
  CHECK(same_bits(kept && true, within));
}

TEST_CASE("beside a bool of the host && looks at the tensor, and only if it must", "[eager]") {
  const Tensor undefined;
  CHECK_FALSE((undefined.is_defined() && undefined > 0));
  CHECK((true && tensor(3) > 2));
  STATIC_REQUIRE(std::same_as<decltype(true && tensor(1)), bool>);
}

TEST_CASE("functions and minus take Scalars as 0-d numbers", "[eager]") {
  const Scalar s = 2.0;
  CHECK(Tensor(-s).item<double>() == -2.0);
  CHECK(exp(s).dtype() == f64);
  CHECK(same_bits(exp(s), exp(tensor(2.0))));
  CHECK(Tensor(2 - s).item<double>() == 0.0);
  CHECK(Tensor(s * s).item<double>() == 4.0);
  CHECK((-s * ones({3})).dtype() == f32);  // still weak
  CHECK(Tensor(-Scalar(3)).dtype() == i64);
  CHECK((!Scalar(true)).item<bool>() == false);
}

TEST_CASE("a Scalar that is negated or given to a function stays an argument", "[jit]") {
  const auto f = [](const Tensor& x, const Scalar& s) {
    return std::vector<Tensor>{x * -s, x + exp(s), tensor(s, f32) + x,
                               2 - s,  s && x,     Tensor(s) * x};
  };
  const auto g = compile(f, {.check = Check::never});
  const Tensor x = arange(4, f32);
  for (int i = 0; i < 8; ++i) {
    const double s = 0.25 * i - 1;
    const std::vector<Tensor> expected = f(x, s);
    const std::vector<Tensor> got = g(x, s);
    for (std::size_t k = 0; k < got.size(); ++k) CHECK(same_bits(got[k], expected[k]));
  }
  CHECK(g.explain().signatures.size() == 1);
  CHECK(g.explain().plan_calls >= 4);
}

TEST_CASE("parts and Variables answer what tensors answer", "[eager][host]") {
  const Tensor x = reshape(arange(12), {3, 4});
  const At row = x.at({1});
  CHECK(row.shape() == Shape{4});
  CHECK(row.rank() == 1);
  CHECK(row.size() == 4);
  CHECK(row.dtype() == i64);
  CHECK(row.device() == Device{});
  CHECK(row.to_vector<int64_t>() == std::vector<int64_t>{4, 5, 6, 7});
  CHECK(row[2].item<int>() == 6);
  CHECK(row.at({3}).item<int>() == 7);
  CHECK(row.to(f32).dtype() == f32);
  CHECK(x.at({new_axis, 1, Range{0, 2}}).shape() == Shape{1, 2});
  const Variable w(x);
  CHECK(w.rank() == 2);
  CHECK(w.size() == 12);
  CHECK(w.device() == Device{});
  CHECK(w[2].to_vector<int64_t>() == std::vector<int64_t>{8, 9, 10, 11});
  CHECK(w.at({2, 3}).item<int>() == 11);
  CHECK(w.to(f64).dtype() == f64);
  CHECK(Variable(tensor(5)).item<int>() == 5);
  CHECK(w.to_vector<int64_t>().size() == 12);
}

TEST_CASE("integers of any type are indices, sizes and axes", "[eager]") {
  const Tensor x = reshape(arange(12), {3, 4});
  const std::size_t i = 1;
  const unsigned char narrow = 1;
  enum Axis { rows, columns };
  CHECK(same_bits(x[i], x[1]));
  CHECK(same_bits(x.at({i, Range{i, i + 2}}), x.at({1, Range{1, 3}})));
  CHECK(same_bits(sum(x, i), sum(x, 1)));
  CHECK(same_bits(sum(x, {rows, columns}), sum(x)));
  CHECK(same_bits(sum(x, columns), sum(x, 1)));
  CHECK(same_bits(argmax(x, narrow), argmax(x, 1)));
  CHECK(zeros({i, std::size_t{3}}).shape() == Shape{1, 3});
  CHECK(x.shape()[i] == 4);
  CHECK(same_bits(slice(x, i, {i, i + 1}), slice(x, 1, {1, 2})));
  CHECK(nn::linear(std::size_t{3}, i).weight.shape() == Shape{3, 1});
}

TEST_CASE("an unsigned index beyond int64 is an error, never a negative one", "[eager]") {
  const Tensor x = reshape(arange(12), {3, 4});
  const std::size_t last = std::size_t{0} - 1;
  const auto check = [](const auto& f) {
    CHECK_THROWS_WITH(f(),
                      Catch::Contains("expected at most 9223372036854775807, the largest int64, "
                                      "got 18446744073709551615"));
  };
  check([&] { return x[last]; });
  check([&] { return x.at({last}).get(); });
  check([&] { return x.at({Range{0, last}}).get(); });
  check([&] { return sum(x, last); });
  check([&] { return argmax(x, last); });
  check([&] { return zeros({2, last}); });
  check([&] { return Pair(1, last).dims(); });
  CHECK_THROWS_WITH(x + last, Catch::Contains("int64 does not hold the number") &&
                                  Catch::Contains("got 18446744073709551615"));
  CHECK((x.to(f64) + last).to_vector<double>()[3] == 0x1p64);
  CHECK(Integer(uint64_t{INT64_MAX}) == INT64_MAX);
}

TEST_CASE("an integer that a dtype does not hold is an error beside its tensors", "[eager]") {
  const Tensor x = zeros({2}, i8);
  const auto check = [](const char* name, const auto& f) {
    CHECK_THROWS_WITH(f().to(Device{}),
                      Catch::StartsWith(name) &&
                          Catch::Contains(": int8 does not hold the number that it meets: "
                                          "expected an integer from -128 to 127, got 300"));
  };
  check("add", [&] { return x + 300; });
  check("floor_divide", [&] { return floor_divide(x, 300); });
  check("pow", [&] { return pow(x, 300); });
  check("at", [&] { return x.at({0}).set(300); });
  check("scatter", [&] { return scatter(x, tensor({0}), 300); });
  check("where", [&] { return where(x > 0, x, 300); });
  check("clamp", [&] { return clamp(x, 0, 300); });
  check("masked_fill", [&] { return masked_fill(x, x > 0, 300); });
  check("pad", [&] { return pad(x, {{1, 1}}, 300); });
  check("full", [&] { return full({2}, 300, i8); });
  check("tensor", [&] { return tensor({1, 300}, i8); });
  check("arange", [&] { return arange(0, 301, 300, i8); });
  check("randint", [&] { return randint(0, 301, {2}, i8); });
  const auto times = compile([](const Tensor& a, const Scalar& s) { return a * s; });
  for (int i = 0; i < 4; ++i) {
    if (i > 0) times(x, 3);  // recorded, and by the plan
    check("mul", [&] { return times(x, 300); });
  }
  // A number that is no host's, of any integer dtype, is looked at by an op.
  check("add", [&] { return x + constant(300, i32, true); });
  check("sub", [&] { return x - constant(300, u16, true); });
  CHECK((x + constant(100, i32, true)).to_vector<int8_t>() == std::vector<int8_t>{100, 100});
  CHECK_THROWS_WITH(take(x, tensor({~0ULL}, u64)), Catch::StartsWith("take: int64 does not hold"));
}

namespace {

template <class T>
concept TakesAxis = requires(const Tensor& x, T axis) {
  sum(x, axis);
};
template <class T>
concept TakesArgAxis = requires(const Tensor& x, T axis) {
  argmax(x, axis);
};
template <class T>
concept TakesOneAxis = requires(const Tensor& x, T axis) {
  softmax(x, axis);
};
template <class T>
concept TakesIndex = requires(const Tensor& x, T i) {
  x[i];
};
template <class T>
concept TakesIndices = requires(const Tensor& x, T i) {
  x.at({i});
};
template <class T>
concept TakesSize = requires(T n) {
  zeros({n});
};

}  // namespace

TEST_CASE("neither bools nor floating numbers are axes, indices or sizes", "[eager]") {
  // max(x, 0.0) meant maximum(x, 0.0), sum(x, true) meant keepdims.
  STATIC_REQUIRE((TakesAxis<int> && !TakesAxis<double> && !TakesAxis<bool> && !TakesAxis<float>));
  STATIC_REQUIRE((TakesArgAxis<long> && !TakesArgAxis<double> && !TakesArgAxis<bool>));
  STATIC_REQUIRE((TakesOneAxis<short> && !TakesOneAxis<double> && !TakesOneAxis<bool>));
  STATIC_REQUIRE((TakesIndex<std::size_t> && !TakesIndex<double> && !TakesIndex<bool>));
  STATIC_REQUIRE((TakesIndices<int> && !TakesIndices<double> && !TakesIndices<bool>));
  STATIC_REQUIRE((TakesSize<std::size_t> && !TakesSize<double> && !TakesSize<bool>));
  STATIC_REQUIRE((!std::convertible_to<double, Pair> && !std::convertible_to<bool, Pair>));
}

TEST_CASE("vectors, arrays, spans and Scalars become tensors of their type", "[eager]") {
  const std::vector<float> floats = {1, 2, 3};
  CHECK(same_bits(tensor(floats), tensor({1.0F, 2.0F, 3.0F})));
  CHECK(same_bits(tensor(std::span(floats).subspan(1)), tensor({2.0F, 3.0F})));
  CHECK(same_bits(tensor(std::array{1, 2}), tensor({1, 2})));
  CHECK(same_bits(tensor(std::vector<bool>{true, false}), tensor({true, false})));
  CHECK(same_bits(tensor(std::vector<long long>{5}), tensor({int64_t{5}})));
  CHECK(same_bits(tensor(floats, f16), tensor({1.0F, 2.0F, 3.0F}, f16)));
  CHECK(tensor(std::vector<double>{}).shape() == Shape{0});
  CHECK(tensor(Scalar(3)).dtype() == i64);
  CHECK(same_bits(tensor(Scalar(0.1), f32), tensor(0.1F)));
  CHECK((tensor(Scalar(0.5)) * ones({2})).dtype() == f64);  // no longer weak
}

TEST_CASE("shapes, dtypes and devices can be written to streams", "[eager][host]") {
  std::ostringstream text;
  const Tensor x = zeros({2, 3});
  text << x.shape() << ' ' << x.dtype() << ' ' << x.device() << ' ' << Shape{};
  CHECK(text.str() == "[2, 3] float32 cpu:0 []");
}
