#include "core/scalar.h"

#include "core/evaluate.h"
#include "core/expr.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>
#include <limits>

using namespace nitinol;

namespace {

/// The value of a formula of two arguments of one type.
template <class F>
uint64_t value_of(ScalarType type, uint64_t a, uint64_t b, F formula) {
  ScalarProgram program;
  const Expr x = argument(program, type, 0), y = argument(program, type, 1);
  const uint32_t wanted[] = {formula(x, y).id};
  const uint64_t args[] = {a, b};
  return evaluate(program, args, wanted)[0];
}

uint64_t bits(float x) {
  return std::bit_cast<uint32_t>(x);
}

}  // namespace

TEST_CASE("programs print one instruction per line", "[core][scalar]") {
  ScalarProgram program;
  const Expr x = argument(program, ScalarType::f32, 0);
  const Expr small = x < 0.5;  // one statement each: C++ does not order the arguments of a call
  const Expr square = fma(x, x, 1);
  const Expr negated = -x;
  select(small, square, negated);
  CHECK(to_string(program) ==
        "%0 = f32 argument 0\n"
        "%1 = f32 constant 0.5\n"
        "%2 = pred lt %0, %1\n"
        "%3 = f32 constant 1\n"
        "%4 = f32 fma %0, %0, %3\n"
        "%5 = f32 neg %0\n"
        "%6 = f32 select %4, %5, %2\n");
}

TEST_CASE("nothing is folded while recording", "[core][scalar]") {
  ScalarProgram program;
  const Expr x = argument(program, ScalarType::f64, 0);
  const std::size_t before = program.instrs.size();
  convert<double>(x * 1 + 0);
  CHECK(program.instrs.size() == before + 5);
}

TEST_CASE("equal programs are equal", "[core][scalar]") {
  ScalarProgram a, b, c;
  argument(a, ScalarType::f32, 0) + 1;
  argument(b, ScalarType::f32, 0) + 1;
  argument(c, ScalarType::f32, 0) + 2;
  CHECK(a == b);
  CHECK(a != c);
}

TEST_CASE("every instruction and type has a name and an operand count", "[core][scalar]") {
  for (int op = 0; op <= static_cast<int>(ScalarOp::end_if); ++op) {
    CHECK(!name_of(static_cast<ScalarOp>(op)).empty());
    CHECK(operand_count(static_cast<ScalarOp>(op)) <= 3);
  }
  CHECK(name_of(ScalarType::f64) == "f64");
  CHECK(size_of(ScalarType::pred) == 1);
  CHECK(size_of(ScalarType::u16) == 2);
  CHECK(size_of(ScalarType::f64) == 8);
}

TEST_CASE("integers wrap in the interpreter", "[core][scalar]") {
  const auto add = [](auto x, auto y) { return x + y; };
  const auto mul = [](auto x, auto y) { return x * y; };
  const auto div = [](auto x, auto y) { return x / y; };
  const auto rem = [](auto x, auto y) { return x % y; };
  const auto high = [](auto x, auto y) { return mul_high(x, y); };
  CHECK(value_of(ScalarType::i8, 127, 1, add) == 0x80);
  CHECK(value_of(ScalarType::u16, 0xffff, 0xffff, mul) == 1);
  CHECK(value_of(ScalarType::i8, 0x80, 0xff, div) == 0x80);  // -128 / -1
  CHECK(value_of(ScalarType::i8, 0x80, 0xff, rem) == 0);
  CHECK(value_of(ScalarType::i32, 0xfffffff9, 2, div) == 0xfffffffd);  // -7 / 2 = -3
  CHECK(value_of(ScalarType::i32, 0xfffffff9, 2, rem) == 0xffffffff);
  CHECK(value_of(ScalarType::u64, ~0ULL, ~0ULL, high) == ~0ULL - 1);
  CHECK(value_of(ScalarType::i64, ~0ULL, 5, high) == ~0ULL);
  CHECK(value_of(ScalarType::i8, 0x80, 0x80, high) == 0x40);
}

TEST_CASE("shift counts are masked and signed shifts are arithmetic", "[core][scalar]") {
  const auto left = [](auto x, auto y) { return x << y; };
  const auto right = [](auto x, auto y) { return x >> y; };
  CHECK(value_of(ScalarType::u32, 1, 33, left) == 2);
  CHECK(value_of(ScalarType::u8, 1, 9, left) == 2);
  CHECK(value_of(ScalarType::i16, 0x8000, 15, right) == 0xffff);
  CHECK(value_of(ScalarType::u16, 0x8000, 15, right) == 1);
}

TEST_CASE("float to integer saturates and NaN gives 0", "[core][scalar]") {
  const auto to = [](ScalarType type) { return [type](auto x, auto) { return convert(x, type); }; };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(value_of(ScalarType::f32, bits(nan), 0, to(ScalarType::i32)) == 0);
  CHECK(value_of(ScalarType::f32, bits(1e30F), 0, to(ScalarType::i32)) == 0x7fffffff);
  CHECK(value_of(ScalarType::f32, bits(-1e30F), 0, to(ScalarType::i32)) == 0x80000000);
  CHECK(value_of(ScalarType::f32, bits(-1), 0, to(ScalarType::u8)) == 0);
  CHECK(value_of(ScalarType::f32, bits(255.9F), 0, to(ScalarType::u8)) == 255);
  CHECK(value_of(ScalarType::f32, bits(-128.5F), 0, to(ScalarType::i8)) == 0x80);
  CHECK(value_of(ScalarType::f32, bits(1e30F), 0, to(ScalarType::u64)) == ~0ULL);
  CHECK(value_of(ScalarType::f32, bits(nan), 0, to(ScalarType::pred)) == 1);
  CHECK(value_of(ScalarType::f32, bits(-0.0F), 0, to(ScalarType::pred)) == 0);
}

TEST_CASE("the interpreter skips a rare path that is not taken", "[core][scalar]") {
  const auto formula = [](auto x, auto y) {
    return if_any(y == 0, x, [&] { return if_any(x == 1, x + 10, [&] { return x + 20; }); });
  };
  CHECK(value_of(ScalarType::i32, 1, 5, formula) == 1);
  CHECK(value_of(ScalarType::i32, 1, 0, formula) == 21);
  CHECK(value_of(ScalarType::i32, 2, 0, formula) == 12);
  const auto division = [](auto x, auto y) {
    return if_any(y != 0, x, [&] { return x / y; });  // would trap
  };
  CHECK(value_of(ScalarType::i32, 7, 0, division) == 7);
}

TEST_CASE("the table of 1/pi starts after 64 zero bits", "[core][scalar]") {
  const ConstantTable& table = constant_table(TableId::inverse_pi);
  CHECK(table.name == "inverse_pi");
  CHECK(table.type == ScalarType::u32);
  CHECK(std::ldexp(table.words[2], -32) + std::ldexp(table.words[3], -64) == Approx(1 / M_PI));
}
