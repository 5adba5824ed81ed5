#include "core/num.h"

#include "core/evaluate.h"
#include "core/probe.h"

#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <random>

using namespace nitinol;

namespace {

/// The formula's value by Num and by the interpreter, as bit patterns; NaN as one pattern.
template <class T, class F>
std::array<uint64_t, 2> both(F formula, T a, T b) {
  const auto bits_of_value = [](auto value) -> uint64_t {
    if constexpr (std::is_same_v<decltype(value), bool>)
      return value;
    else if (value != value)
      return ~0ULL;
    else
      return std::bit_cast<native::Bits<decltype(value)>>(value);
  };
  const auto native_result = formula(Num<T>(a, {}), Num<T>(b, {})).value;
  ScalarProgram program;
  const Expr x = argument(program, scalar_type_of<T>, 0);
  const Expr y = argument(program, scalar_type_of<T>, 1);
  const uint32_t wanted[] = {formula(x, y).id};
  const uint64_t args[] = {std::bit_cast<native::Bits<T>>(a), std::bit_cast<native::Bits<T>>(b)};
  uint64_t interpreted = evaluate(program, args, wanted)[0];
  if (native_result != native_result && interpreted != 0) interpreted = ~0ULL;
  return {bits_of_value(native_result), interpreted};
}

template <class T>
T random_value(std::mt19937_64& random) {
  const auto bits = static_cast<native::Bits<T>>(random());
  if constexpr (std::is_floating_point_v<T>) {
    if (random() % 2 == 0) return static_cast<T>(static_cast<int>(random() % 2001) - 1000) / 8;
  }
  return std::bit_cast<T>(bits);
}

template <class T, class... F>
void check_formulas(F... formulas) {
  std::mt19937_64 random(1);
  for (int k = 0; k < 2000; ++k) {
    const T a = random_value<T>(random), b = random_value<T>(random);
    const auto check_one = [&](auto formula) {
      const auto [native_bits, interpreted] = both<T>(formula, a, b);
      CAPTURE(+a, +b);
      REQUIRE(native_bits == interpreted);
    };
    (check_one(formulas), ...);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("Num computes what the interpreter computes: floats", "[core][num]", float,
                   double) {
  check_formulas<TestType>(
      [](auto x, auto y) { return x + y; }, [](auto x, auto y) { return x - y; },
      [](auto x, auto y) { return x * y; }, [](auto x, auto y) { return x / y; },
      [](auto x, auto y) { return fma(x, y, 0.1); }, [](auto x, auto) { return sqrt(x); },
      [](auto x, auto) { return -abs(x); }, [](auto x, auto) { return floor(x); },
      [](auto x, auto) { return ceil(x); }, [](auto x, auto) { return trunc(x); },
      [](auto x, auto) { return round_even(x); }, [](auto x, auto y) { return x < y; },
      [](auto x, auto y) { return x >= y; }, [](auto x, auto y) { return x != y; },
      [](auto x, auto y) { return select((x == y) ^ (y <= 0), x, 2); },
      [](auto x, auto) { return convert<int32_t>(x); },
      [](auto x, auto) { return convert<uint8_t>(x); },
      [](auto x, auto) { return convert<int64_t>(x); },
      [](auto x, auto) { return convert<uint64_t>(x); },
      [](auto x, auto) { return convert<float>(x); },
      [](auto x, auto) { return convert<double>(x); },
      [](auto x, auto) { return convert<bool>(x); },
      [](auto x, auto y) { return if_any(x < y, x, [&] { return y * 0.5; }); });
}

TEMPLATE_TEST_CASE("Num computes what the interpreter computes: integers", "[core][num]", uint8_t,
                   int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t) {
  check_formulas<TestType>(
      [](auto x, auto y) { return x + y * 3; }, [](auto x, auto y) { return x - y; },
      [](auto x, auto y) { return x * y; }, [](auto x, auto y) { return mul_high(x, y); },
      [](auto x, auto y) { return x / (y | 1); }, [](auto x, auto y) { return x % (y | 1); },
      [](auto x, auto y) { return (x & y) ^ (x | ~y); }, [](auto x, auto y) { return x << y; },
      [](auto x, auto y) { return x >> y; }, [](auto x, auto) { return -x; },
      [](auto x, auto) { return abs(x); }, [](auto x, auto y) { return x < y; },
      [](auto x, auto y) { return x <= y; }, [](auto x, auto) { return convert<int8_t>(x); },
      [](auto x, auto) { return convert<uint32_t>(x); },
      [](auto x, auto) { return convert<int64_t>(x); },
      [](auto x, auto) { return convert<float>(x); },
      [](auto x, auto) { return convert<double>(x); },
      [](auto x, auto) { return convert<uint16_t>(convert<bool>(x)); });
}

TEST_CASE("literals take the type of the lane beside them", "[core][num]") {
  const Num<float> x = 0.1F;
  CHECK((0.1 * x).value == 0.1F * 0.1F);
  CHECK((Num<int8_t>(100) + 100).value == static_cast<int8_t>(200));
  CHECK((1 / (1 + x)).value == 1 / (1 + 0.1F));
}

TEST_CASE("the fast path flags what it skipped", "[core][num]") {
  const auto formula = [](auto x) { return 2 * if_any(x > 10, x, [&] { return x + 1; }); };
  const Num<float, Path::fast> small = formula(Num<float, Path::fast>(3, {}));
  const Num<float, Path::fast> large = formula(Num<float, Path::fast>(30, {}));
  CHECK(small.flag.needed == 0);
  CHECK(small.value == 6);
  CHECK(large.flag.needed != 0);
  CHECK(formula(Num<float>(30)).value == 62);
}

TEST_CASE("a look tells which sides of either() there are", "[core][num]") {
  const auto formula = [](auto x) {
    return 1 +
           either(
               x, both(x > 10, [&] { return x < 20; }), [&] { return 2 * x; }, [&] { return -x; });
  };
  const auto found = [&]<Path P>(std::integral_constant<Path, P>, float x) {
    return formula(Num<float, P>(x, {})).flag.needed;
  };
  constexpr std::integral_constant<Path, Path::look> look{};
  constexpr std::integral_constant<Path, Path::look_closely> look_closely{};
  CHECK(found(look, 5) == Look::fails);
  CHECK((found(look, 15) & Look::is_open) != 0);
  CHECK((found(look, 25) & Look::is_open) != 0);
  CHECK(found(look_closely, 15) == Look::holds);
  CHECK(found(look_closely, 25) == Look::fails);
  CHECK(formula(Num<float, Path::first>(15, {})).value == 31);
  CHECK(formula(Num<float, Path::second>(25, {})).value == -24);
  for (const auto& [x, want] : {std::pair(5.0F, -4.0F), {15.0F, 31.0F}, {25.0F, -24.0F}}) {
    CHECK(formula(Num<float, Path::fast>(x, {})).value == want);
    CHECK(formula(Num<float, Path::fast>(x, {})).flag.needed == 0);
    CHECK(formula(Num<float>(x)).value == want);
  }
}

TEST_CASE("a probe finds if_any at compile time", "[core][num]") {
  const auto plain = [](auto x) { return select(x < 1, x, 2 * x); };
  const auto rare = [](auto x) { return 1 + if_any(x < 1, x, [&] { return -x; }); };
  STATIC_REQUIRE(!has_slow_path<decltype(plain), float>);
  STATIC_REQUIRE(has_slow_path<decltype(rare), double>);
  const auto sides = [](auto x) {
    return 1 + either(
                   x, x < 1, [&] { return x; }, [&] { return -x; });
  };
  STATIC_REQUIRE(!has_sides<decltype(rare), double>);
  STATIC_REQUIRE(has_sides<decltype(sides), double>);
}
