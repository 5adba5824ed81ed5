// Sizes, strides and numbers at which the text of GPU kernels could go wrong. What is checked here
// is the device that tests run on; ctest's entries cuda.* collect the launches and run their text
// (tests/replay).
#include "core/backend.h"
#include "core/executables.h"
#include "core/expr.h"
#include "core/library.h"
#include "nitinol.h"
#include "tests/backends/kernels.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace nitinol;

namespace {

/// `count` numbers around 1 and -1, so that neither sums nor products lose what a single one
/// brings, with the extremes anywhere; integers are odd, the largest far
/// down, and one in 997 booleans is true. If asked
/// for, a few are a zero, a denormal number, infinity or NaN: so few that most rows have one kind
/// at most.
Tensor numbers(int64_t count, DType dtype, bool has_special) {
  std::vector<double> values;
  for (int64_t i = 0; i < count; ++i) {
    const double share = std::fmod(static_cast<double>(i + 1) * 0.6180339887498949, 1);
    const double sign = i % 7 < 3 ? -1 : 1;
    if (dtype == boolean) {
      values.push_back(i % 997 == 990 ? 1 : 0);
    } else if (!is_floating(dtype)) {
      const double late = i % 397 == 391 ? static_cast<double>(14 + 2 * (i / 397)) : 0;
      values.push_back(2 * std::floor(share * 6) + 1 + late);
    } else if (has_special && i % 1511 == 700) {
      constexpr double specials[] = {0.0,
                                     -0.0,
                                     1e-40,
                                     std::numeric_limits<double>::infinity(),
                                     -std::numeric_limits<double>::infinity(),
                                     std::numeric_limits<double>::quiet_NaN()};
      values.push_back(specials[static_cast<std::size_t>(i / 1511) % 6]);
    } else {
      values.push_back(sign * (0.9 + share / 5));
    }
  }
  return cast(tensor(values), dtype);
}

std::vector<Tensor> reductions(const Tensor& x, int64_t axis) {
  if (x.dtype() == boolean) return {any(x, axis), all(x, axis), max(x, axis), argmax(x, axis)};
  std::vector<Tensor> results = {sum(x, axis), prod(x, axis)};
  if (x.shape()[axis] != 0) {
    for (const Tensor& result : {max(x, axis), min(x, axis), argmax(x, axis), argmin(x, axis)})
      results.push_back(result);
  }
  return results;
}

/// Sums, extremes and positions along the last axis and the first, eager and compiled.
void check_reductions(const Tensor& x) {
  for (const int64_t axis : {int64_t{1}, int64_t{0}}) {
    const Tensor& along = axis == 1 ? x : Tensor(copy(transpose(x)));
    const auto f = compile([axis](const Tensor& v) { return reductions(v, axis); });
    const std::vector<Tensor> eager = reductions(along, axis);
    for (int call = 0; call < 3; ++call) {
      const std::vector<Tensor> results = f(along);
      for (std::size_t i = 0; i < eager.size(); ++i) CHECK(same_bits(results[i], eager[i]));
    }
  }
}

// The long ones first: of launches that run one text, few are kept.
constexpr int64_t lengths[] = {32769, 32768, 20000, 16385, 9000, 8193, 8192, 5000, 4097,
                               4096,  3000,  4095,  2048,  1025, 1024, 1023, 1000, 127,
                               65,    64,    63,    33,    32,   31,   2,    1,    0};

}  // namespace

TEST_CASE("reductions of rows and columns of every length", "[cuda]") {
  for (const int64_t length : lengths) {
    CAPTURE(length);
    for (const DType dtype : {f32, f64}) {
      check_reductions(reshape(numbers(3 * length, dtype, false), {3, length}));
      check_reductions(reshape(numbers(3 * length, dtype, true), {3, length}));
    }
  }
}

TEST_CASE("reductions of every dtype", "[cuda]") {
  for (const DType dtype : {f16, bf16, u8, i8, u16, i16, u32, i32, u64, i64, boolean}) {
    CAPTURE(dtype);
    for (const int64_t length : {int64_t{4097}, int64_t{1000}, int64_t{33}})
      check_reductions(reshape(numbers(5 * length, dtype, true), {5, length}));
  }
}

TEST_CASE("reductions of very long rows", "[cuda]") {
  for (const int64_t length : {int64_t{1000001}, int64_t{65537}})
    check_reductions(reshape(numbers(length, f32, false), {1, length}));
}

// An instruction of a GPU finds the extremes of f32, whose zeros have an order.
TEST_CASE("of zeros the positive one is larger, and a NaN is the result", "[cuda]") {
  const auto signs = [](const Tensor& results) {
    const auto values = results.to(Device{}).to(f64).to_vector<double>();
    CHECK(std::isnan(values[2]));
    return std::vector<bool>{std::signbit(values[0]), std::signbit(values[1])};
  };
  for (const int64_t length : {int64_t{65537}, int64_t{5000}, int64_t{1000}, int64_t{33}}) {
    for (const int64_t place : {int64_t{0}, length / 2, length - 1}) {
      std::vector<double> values(static_cast<std::size_t>(3 * length), -0.0);
      values[static_cast<std::size_t>(place)] = 0.0;
      values[static_cast<std::size_t>(2 * length + place)] =
          std::numeric_limits<double>::quiet_NaN();
      for (const DType dtype : {f32, f64, bf16}) {
        CAPTURE(length, place, dtype);
        const Tensor x = reshape(cast(tensor(values), dtype), {3, length});
        CHECK(signs(max(x, 1)) == std::vector{false, true});
        CHECK(signs(min(-x, 1)) == std::vector{true, false});
        check_reductions(x);
        check_reductions(-x);
      }
    }
  }
}

TEST_CASE("rows that pass through several stages, of every length", "[cuda]") {
  const auto f = [](const Tensor& x) {
    return std::vector<Tensor>{softmax(x, -1), softmax(x, 0), layer_norm(x), var(x, 0),
                               logsumexp(x, -1)};
  };
  const auto compiled = compile(f);
  for (const int64_t length : lengths) {
    if (length == 0) continue;
    CAPTURE(length);
    for (const DType dtype : {f32, f64, bf16}) {
      const Tensor x = reshape(numbers(3 * length, dtype, false), {3, length});
      const std::vector<Tensor> eager = f(x);
      for (int call = 0; call < 3; ++call) {
        const std::vector<Tensor> results = compiled(x);
        for (std::size_t i = 0; i < eager.size(); ++i) CHECK(same_bits(results[i], eager[i]));
      }
    }
  }
}

// Too long to be kept, and too many to be split.
TEST_CASE("many rows that are longer than a block of threads keeps", "[cuda]") {
  const Tensor x = reshape(numbers(264 * 33000, bf16, true), {264, 33000});
  const auto f = [](const Tensor& v) -> Tensor { return softmax(v, -1); };
  const auto compiled = compile(f);
  const Tensor eager = f(x);
  for (int call = 0; call < 3; ++call) CHECK(same_bits(compiled(x), eager));
}

// Squares of points, whole and cut, where operands lie along other loops than the results.
TEST_CASE("elementwise kernels of operands that lie across", "[cuda]") {
  const auto f = [](const Tensor& x, const Tensor& y, const Tensor& z) -> Tensor {
    return abs(x) + y * z;
  };
  const auto check = [&](const Tensor& x, const Tensor& y, const Tensor& z) {
    const auto compiled = compile(f);
    const Tensor eager = f(x, y, z);
    for (int call = 0; call < 3; ++call) CHECK(same_bits(compiled(x, y, z), eager));
  };
  for (const DType dtype : {f32, f64, bf16, u8}) {
    for (const auto& [rows, columns] :
         {std::pair{130, 150}, std::pair{192, 128}, std::pair{1025, 17}, std::pair{16, 3000}}) {
      CAPTURE(dtype, rows, columns);
      const Tensor along = reshape(numbers(rows * columns, dtype, true), {rows, columns});
      const Tensor across =
          transpose(reshape(numbers(columns * rows, dtype, true), {columns, rows}));
      const Tensor row = numbers(columns, dtype, false);
      const Tensor column = reshape(numbers(rows, dtype, false), {rows, 1});
      check(across, along, row);
      check(across, column, across);
      check(flip(across, 1), across, along);
      check(cast(across, f32), along, column);
    }
    // Of three loops the first lies closest, or the second.
    const Tensor x = reshape(numbers(5 * 70 * 90, dtype, true), {5, 70, 90});
    const Tensor y = reshape(numbers(5 * 70 * 90, dtype, true), {90, 5, 70});
    const Tensor z = reshape(numbers(5 * 70 * 90, dtype, true), {5, 90, 70});
    check(x, permute(y, {1, 2, 0}), permute(z, {0, 2, 1}));
    check(permute(x, {2, 0, 1}), y, flip(permute(z, {1, 0, 2}), 1));
    check(permute(x, {1, 2, 0}), permute(y, {2, 0, 1}), permute(z, {2, 1, 0}));
  }
}

TEST_CASE("elementwise kernels of every rank, over views", "[cuda]") {
  const auto f = [](const Tensor& x, const Tensor& y) -> Tensor { return exp(x) * 2 + y; };
  for (int rank = 0; rank <= max_rank; ++rank) {
    Shape shape;
    Dims turned;
    for (int i = 0; i < rank; ++i) {
      shape.push_back(2 + i % 2);
      turned.push_back(rank - 1 - i);
    }
    CAPTURE(rank);
    const Tensor x = reshape(numbers(element_count(shape), f32, true), shape);
    const Tensor back = permute(x, turned);
    Tensor mirrored = x;
    for (int i = 0; i < rank; i += 2) mirrored = flip(mirrored, i);
    Shape first_of = shape;
    if (rank > 0) first_of[0] = 1;
    const Tensor row = reshape(numbers(element_count(first_of), f32, false), first_of);
    for (const auto& [a, b] : {std::pair{x, x}, std::pair{x, mirrored}, std::pair{mirrored, row},
                               std::pair{back, back}}) {
      const auto g = compile(f);
      const Tensor eager = f(a, b);
      for (int call = 0; call < 3; ++call) CHECK(same_bits(g(a, b), eager));
    }
  }
}

TEST_CASE("pieces of vectors begin anywhere", "[cuda]") {
  const auto f = [](const Tensor& x) -> Tensor { return x * x + 1; };
  for (const DType dtype : {f32, f64, f16, u8}) {
    const Tensor all = numbers(4200, dtype, true);
    for (const int64_t begin : {0, 1, 2, 4, 8}) {
      for (const int64_t length : {1, 7, 16, 31, 1000, 4097}) {
        const Tensor x = all.at({Range(begin, begin + length)});
        const auto g = compile(f);
        const Tensor eager = f(x);
        for (int call = 0; call < 3; ++call) CHECK(same_bits(g(x), eager));
      }
    }
  }
}

// Ops fill such results without a kernel.
TEST_CASE("kernels of rows without elements", "[cuda]") {
  Backend& device = backend(default_device());
  for (const Combine combine : {Combine::add, Combine::multiply, Combine::maximum}) {
    for (const Order order : {Order::lanes, Order::sequential}) {
      const auto executable = executable_for(device, test::reduction(combine, f32, f32, order));
      std::vector<float> results(3, 7);
      float nothing = 0;
      const test::Call call = {
          .buffers = {&nothing, results.data()}, .sizes = {3, 0}, .strides = {1, 1, 1, 0}};
      executable->launch(call.launch());
      const float expected = combine == Combine::add ? 0
                             : combine == Combine::multiply
                                 ? 1
                                 : -std::numeric_limits<float>::infinity();
      for (const float result : results) {
        CHECK(result == expected);
        CHECK(std::signbit(result) == std::signbit(expected));
      }
    }
  }
}

// All threads of a row compute what it keeps, from an operand whose place the result takes.
TEST_CASE("a result of a row in place of what all threads of the row read", "[cuda]") {
  for (const Order order : {Order::lanes, Order::sequential}) {
    Kernel kernel = test::reduction(Combine::add, f32, f32, order);
    kernel.operands.insert(kernel.operands.begin() + 1,
                           {.role = Role::input, .dtype = f32, .inner = StrideClass::one});
    kernel.operands[2].alias = 1;
    kernel.operands.push_back({.role = Role::output, .dtype = f32, .inner = StrideClass::one});
    kernel.row_values = {ScalarType::f32};
    Stage& rows = kernel.stages[1];
    rows = {.level = Stage::Level::row,
            .program = {},
            .sources = {{Source::Kind::reduction, 0}, {Source::Kind::operand, 1}},
            .sinks = {}};
    const Expr total = argument(rows.program, ScalarType::f32, 0);
    const Expr both = total + argument(rows.program, ScalarType::f32, 1);
    rows.sinks = {{Sink::Kind::store, 2, both.id}, {Sink::Kind::row_value, 0, both.id}};
    Stage last = {.level = Stage::Level::element,
                  .program = {},
                  .sources = {{Source::Kind::operand, 0}, {Source::Kind::row_value, 0}},
                  .sinks = {}};
    const Expr x = argument(last.program, ScalarType::f32, 0);
    const Expr moved = x + argument(last.program, ScalarType::f32, 1);
    last.sinks = {{Sink::Kind::store, 3, moved.id}};
    kernel.stages.push_back(last);
    const auto executable = executable_for(backend(default_device()), kernel);
    for (const int64_t length : {int64_t{3000}, int64_t{100}, int64_t{7}}) {
      constexpr int64_t count = 5;
      std::vector<float> in(static_cast<std::size_t>(count * length), 1), out = in;
      std::vector<float> kept(count, 10);
      const bool is_rows = order == Order::lanes;
      const int64_t row = is_rows ? length : 1, element = is_rows ? 1 : count;
      const test::Call call = {.buffers = {in.data(), kept.data(), kept.data(), out.data()},
                               .sizes = {count, length},
                               .strides = {row, element, 1, 0, 1, 0, row, element}};
      executable->launch(call.launch());
      const auto total_of_row = static_cast<float>(length + 10);
      CHECK(kept == std::vector<float>(count, total_of_row));
      CHECK(out == std::vector<float>(out.size(), total_of_row + 1));
    }
  }
}

// Each is computed by a thread of its own, and one takes the place of what the others read.
TEST_CASE("numbers of an optimizer, of which one is updated in place", "[cuda]") {
  for (const DType dtype : {f32, f64}) {
    const auto step = [](const Variable& count, const Tensor& rate) {
      count += 1;
      const Tensor n = count;
      return std::vector<Tensor>{rate / (1 - pow(0.9, n)), sqrt(1 - pow(0.999, n)), exp(n) + rate};
    };
    const Variable eager(zeros({1}, dtype)), other(zeros({1}, dtype));
    const Tensor rate = full({1}, 0.001, dtype);
    const auto f = compile(step, {.check = Check::never});
    for (int call = 0; call < 6; ++call) {
      const std::vector<Tensor> expected = step(eager, rate), results = f(other, rate);
      for (std::size_t i = 0; i < expected.size(); ++i) CHECK(same_bits(results[i], expected[i]));
      CHECK(same_bits(Tensor(other), Tensor(eager)));
    }
  }
}

TEST_CASE("checks of elements far down and of the last one", "[cuda]") {
  for (const int64_t length : {1, 255, 257, 5000}) {
    const Tensor x = arange(length) + 1;
    for (const int64_t at : {int64_t{0}, length / 2, length - 1}) {
      const Tensor divisor = where(arange(length) == at, 0, x);
      const auto divide =
          compile([](const Tensor& a, const Tensor& b) -> Tensor { return floor_divide(a, b); });
      for (int call = 0; call < 3; ++call)
        CHECK_THROWS_AS(divide(x, divisor).to_vector<int64_t>(), Error);
      const auto look =
          compile([](const Tensor& a, const Tensor& i) -> Tensor { return take(a, i) * 2; });
      for (int call = 0; call < 3; ++call) {
        CHECK_THROWS_AS(
            look(x, where(arange(length) == at, length, arange(length))).to_vector<int64_t>(),
            Error);
        CHECK(same_bits(look(x, arange(length)), x * 2));
      }
    }
  }
}
