// Reductions against plain loops, and the prebuilt code against the interpreter, bit for bit.
#include "backends/host/accumulate.h"
#include "backends/host/combine.h"
#include "core/expr.h"
#include "core/isa.h"
#include "core/kernel.h"
#include "core/library.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();
constexpr float infinity = std::numeric_limits<float>::infinity();

/// One value per row of x[rows, n]; n elements `step` apart, rows `row_step` apart.
template <class T, class R>
std::vector<R> reduce(const Kernel& kernel, std::vector<T>& x, std::vector<int64_t> sizes,
                      std::vector<int64_t> strides, Device::Kind kind, int threads) {
  const int64_t rows = sizes[0];
  std::vector<R> result(static_cast<std::size_t>(rows));
  const Call call = {.buffers = {x.data(), result.data()},
                     .sizes = std::move(sizes),
                     .strides = {strides[0], strides[1], 1, 0},
                     .threads = threads};
  call.run(kernel, kind);
  return result;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::ranges::equal(a, b, [](T x, T y) {
    if constexpr (std::is_floating_point_v<T>) {
      return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
    }
    return x == y;
  });
}

template <class T, class R>
void check_all_ways(Combine combine, DType in, DType out, std::vector<T> x, int64_t rows,
                    int64_t n) {
  CAPTURE(name_of(combine), name_of(in), rows, n);
  for (const Order order : {Order::lanes, Order::sequential}) {
    // The same matrix in both directions: contiguous along the vectorised loop, and not.
    for (const bool is_contiguous : {true, false}) {
      const bool by_rows = (order == Order::lanes) == is_contiguous;
      const std::vector<int64_t> strides =
          by_rows ? std::vector<int64_t>{n, 1} : std::vector<int64_t>{1, rows};
      // 1 if that loop has one element at most, whatever the stride
      const int64_t inner = order == Order::lanes ? strides[1] : strides[0];
      const StrideClass outer = order == Order::lanes ? StrideClass::zero : StrideClass::one;
      const Kernel kernel = reduction(combine, in, out, order,
                                      inner == 1 ? StrideClass::one : StrideClass::any, outer);
      const auto expected = reduce<T, R>(kernel, x, {rows, n}, strides, Device::Kind::reference, 1);
      const auto check = [&](const Kernel& one) {
        const auto by = [&](Device::Kind kind, int threads) {
          return reduce<T, R>(one, x, {rows, n}, strides, kind, threads);
        };
        for (const int threads : {1, 2, 3})
          CHECK(same_bits(by(Device::Kind::cpu, threads), expected));
        CHECK(same_bits(by(Device::Kind::reference, 3), expected));
      };
      check(kernel);
      // Vectors run across rows: of any length, or after they have been turned.
      if (is_contiguous || (order == Order::lanes && is_arg(combine))) continue;
      const Order other = order == Order::lanes ? Order::across : order;
      check(reduction(combine, in, out, other, StrideClass::one, StrideClass::one));
    }
  }
}

template <class T>
std::vector<T> integers_of(int64_t count, uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  RandomNumbers numbers(seed);
  for (T& value : values) value = static_cast<T>(numbers.next());
  return values;
}

struct Extent {
  int64_t rows, n;
};
constexpr Extent extents[] = {{1, 1},    {100, 1}, {200, 10},  {70, 32},  {65, 31},
                              {3, 2},    {5, 64},  {2, 65},    {7, 300},  {1, 9000},
                              {3, 5000}, {40, 70}, {1100, 90}, {1, 70001}};

}  // namespace

TEST_CASE("prebuilt reductions equal interpreted ones at any thread count", "[reduction]") {
  for (const auto& [rows, n] : extents) {
    const int64_t count = rows * n;
    const auto x = RandomNumbers(11).reals<float>(count);
    for (const Combine c : {Combine::add, Combine::multiply, Combine::maximum, Combine::minimum}) {
      check_all_ways<float, float>(c, f32, f32, x, rows, n);
    }
    if (count > 100000) continue;
    for (const Combine c : {Combine::arg_maximum, Combine::arg_minimum}) {
      check_all_ways<float, int64_t>(c, f32, i64, x, rows, n);
    }
    const auto y = RandomNumbers(12).reals<double>(count);
    check_all_ways<double, double>(Combine::add, f64, f64, y, rows, n);
    check_all_ways<double, int64_t>(Combine::arg_minimum, f64, i64, y, rows, n);
    check_all_ways<int64_t, int64_t>(Combine::add, i64, i64, integers_of<int64_t>(count, 1), rows,
                                     n);
    check_all_ways<int32_t, int32_t>(Combine::multiply, i32, i32, integers_of<int32_t>(count, 2),
                                     rows, n);
    check_all_ways<int8_t, int8_t>(Combine::maximum, i8, i8, integers_of<int8_t>(count, 3), rows,
                                   n);
    check_all_ways<uint8_t, int64_t>(Combine::arg_maximum, u8, i64, integers_of<uint8_t>(count, 4),
                                     rows, n);
    check_all_ways<int16_t, int16_t>(Combine::add, i16, i16, integers_of<int16_t>(count, 5), rows,
                                     n);
    auto bits = integers_of<uint8_t>(count, 6);
    for (uint8_t& bit : bits) bit &= 1;
    check_all_ways<uint8_t, uint8_t>(Combine::logical_and, boolean, boolean, bits, rows, n);
    check_all_ways<uint8_t, uint8_t>(Combine::logical_or, boolean, boolean, bits, rows, n);
    auto halves = integers_of<uint16_t>(count, 7);
    for (uint16_t& half : halves) half = static_cast<uint16_t>(half & 0xbfff);  // finite
    check_all_ways<uint16_t, uint16_t>(Combine::add, f16, f16, halves, rows, n);
    check_all_ways<uint16_t, uint16_t>(Combine::maximum, bf16, bf16, halves, rows, n);
  }
}

TEST_CASE("extremes propagate NaN and order zeros; positions are the first", "[reduction]") {
  struct Case {
    std::vector<float> x;
    float maximum, minimum;
    int64_t arg_maximum, arg_minimum;
  };
  std::vector<Case> cases = {
      {{-0.0F, 0.0F}, 0.0F, -0.0F, 0, 0},
      {{0.0F, -0.0F}, 0.0F, -0.0F, 0, 0},
      {{1, nan_value, 2, nan_value}, nan_value, nan_value, 1, 1},
      {{-infinity, -infinity}, -infinity, -infinity, 0, 0},
      {{infinity}, infinity, infinity, 0, 0},
      {{1, 3, 3, 1, 1}, 3, 1, 1, 0},
  };
  // The same far apart, in other lanes and blocks.
  Case spread = {std::vector<float>(9001, 5.0F), 7, 2, 4097, 130};
  spread.x[4097] = spread.x[4096 + 65] = spread.x[9000] = 7;
  spread.x[130] = spread.x[131] = spread.x[8000] = 2;
  cases.push_back(spread);
  Case zeros = {std::vector<float>(500, -1.0F), 0.0F, -1, 3, 0};
  zeros.x[3] = zeros.x[250] = -0.0F;
  zeros.x[401] = 0.0F;
  cases.push_back(zeros);
  zeros.x[401] = -0.0F;
  zeros.maximum = -0.0F;
  cases.push_back(zeros);
  for (const std::size_t at : {0, 77, 499}) {
    Case not_a_number = {std::vector<float>(500, infinity), nan_value, nan_value, 0, 0};
    not_a_number.x[at] = -nan_value;
    not_a_number.arg_maximum = not_a_number.arg_minimum = static_cast<int64_t>(at);
    cases.push_back(not_a_number);
  }
  for (Case& c : cases) {
    const auto n = static_cast<int64_t>(c.x.size());
    for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
      for (const Order order : {Order::lanes, Order::sequential}) {
        const auto of = [&](Combine combine, DType out) {
          return reduction(combine, f32, out, order,
                           order == Order::lanes ? StrideClass::one : StrideClass::any);
        };
        const std::vector<int64_t> strides = {n, 1};
        const auto value = [&](Combine combine) {
          return reduce<float, float>(of(combine, f32), c.x, {1, n}, strides, kind, 2);
        };
        const auto position = [&](Combine combine) {
          return reduce<float, int64_t>(of(combine, i64), c.x, {1, n}, strides, kind, 2)[0];
        };
        CHECK(same_bits(value(Combine::maximum), {c.maximum}));
        CHECK(same_bits(value(Combine::minimum), {c.minimum}));
        CHECK(position(Combine::arg_maximum) == c.arg_maximum);
        CHECK(position(Combine::arg_minimum) == c.arg_minimum);
      }
    }
  }
}

TEST_CASE("reducing nothing gives the neutral element", "[reduction]") {
  for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
    for (const Order order : {Order::lanes, Order::sequential}) {
      std::vector<float> x(1);
      const auto of = [&](Combine c) {
        return reduce<float, float>(reduction(c, f32, f32, order), x, {3, 0}, {1, 1}, kind, 2);
      };
      CHECK(same_bits(of(Combine::add), {0, 0, 0}));
      CHECK(same_bits(of(Combine::multiply), {1, 1, 1}));
    }
  }
}

TEST_CASE("accumulating loops give equal bits at every instruction set", "[reduction]") {
  const auto x = RandomNumbers(21).reals<float>(4096);
  for (const Combine c :
       {Combine::add, Combine::multiply, Combine::maximum, Combine::arg_minimum}) {
    const host::Combiner combiner = host::combiner_of({c, ScalarType::f32});
    std::vector<float> lanes[3];
    std::vector<int64_t> positions[3];
    for (const Isa isa : {Isa::avx2, Isa::avx512}) {
      if (isa > host_isa()) continue;
      const auto level = static_cast<std::size_t>(isa);
      for (const int64_t n : {1, 63, 64, 1000, 4096}) {
        lanes[level].assign(64, 0);
        positions[level].assign(64, 0);
        combiner.fill(lanes[level].data(), positions[level].data(), 64);
        host::accumulate_of({c, ScalarType::f32}, isa)
            .lanes({x.data(), n, 10, true, true}, lanes[level].data(), positions[level].data());
        lanes[0].assign(64, 0);
        positions[0].assign(64, 0);
        combiner.fill(lanes[0].data(), positions[0].data(), 64);
        host::accumulate_of({c, ScalarType::f32}, Isa::baseline)
            .lanes({x.data(), n, 10, true, true}, lanes[0].data(), positions[0].data());
        CHECK(same_bits(lanes[0], lanes[level]));
        CHECK(positions[0] == positions[level]);
      }
    }
  }
}

namespace {

/// max <- x; sum <- x - max; kept = sum; out = (x - max) * kept. The difference may be kept too: in
/// memory of its own or in the output's.
Kernel three_passes(bool is_kept, int16_t alias) {
  Kernel kernel;
  kernel.order = Order::lanes;
  kernel.operands = {{Role::input, f32, StrideClass::one, -1},
                     {Role::output, f32, StrideClass::one, -1}};
  kernel.reductions = {{Combine::maximum, ScalarType::f32}, {Combine::add, ScalarType::f32}};
  kernel.row_values = {ScalarType::f32};
  constexpr auto type = ScalarType::f32;
  Stage first, second, row, last;
  argument(first.program, type, 0);
  first.sources = {{Source::Kind::operand, 0}};
  first.sinks = {{Sink::Kind::accumulate, 0, 0}};
  argument(second.program, type, 0);
  argument(second.program, type, 1);
  emit(second.program, {.op = ScalarOp::sub, .type = type, .a = 0, .b = 1});
  second.sources = {{Source::Kind::operand, 0}, {Source::Kind::reduction, 0}};
  second.sinks = {{Sink::Kind::accumulate, 1, 2}};
  row.level = Stage::Level::row;
  argument(row.program, type, 0);
  row.sources = {{Source::Kind::reduction, 1}};
  row.sinks = {{Sink::Kind::row_value, 0, 0}};
  last.program = second.program;
  argument(last.program, type, 2);
  emit(last.program, {.op = ScalarOp::mul, .type = type, .a = 2, .b = 3});
  last.sources = {
      {Source::Kind::operand, 0}, {Source::Kind::reduction, 0}, {Source::Kind::row_value, 0}};
  last.sinks = {{Sink::Kind::store, 1, 4}};
  if (is_kept) {
    kernel.operands.push_back({Role::scratch, f32, StrideClass::one, alias});
    second.sinks.push_back({Sink::Kind::store, 2, 2});
    last.program.instrs.clear();
    const Expr difference = argument(last.program, type, 0);
    last.sources = {{Source::Kind::operand, 2}, {Source::Kind::row_value, 0}};
    last.sinks = {{Sink::Kind::store, 1, (difference * argument(last.program, type, 1)).id}};
  }
  kernel.stages = {first, second, row, last};
  return kernel;
}

/// Rows whose elements lie in parts: part 0 of each row, then part 1 of each, ...; `step` apart.
struct Parts {
  int64_t rows;
  std::vector<int64_t> sizes;  ///< of the loops over a row, outermost first; the last is of a part
  int64_t step;

  [[nodiscard]] int64_t length() const {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  [[nodiscard]] int64_t row_step() const { return step * sizes.back(); }
  /// Where an element lies.
  [[nodiscard]] std::size_t place(int64_t row, int64_t i) const {
    const std::vector<int64_t> list = strides();
    int64_t at = row * list[0];
    for (std::size_t k = sizes.size(); k > 0; i /= sizes[--k]) at += i % sizes[k - 1] * list[k];
    return static_cast<std::size_t>(at);
  }
  /// Of all loops: along rows, then of a row. Outer loops leave gaps.
  [[nodiscard]] std::vector<int64_t> strides() const {
    std::vector<int64_t> list = {step};
    for (std::size_t k = sizes.size() - 1; k > 0; --k) {
      const int64_t points = list[0] * sizes[k];
      list.insert(list.begin(), k + 1 == sizes.size() ? points * rows : points + 3);
    }
    list.insert(list.begin(), row_step());
    return list;
  }
  /// The same of rows that lie as one.
  [[nodiscard]] std::vector<int64_t> packed_strides() const {
    std::vector<int64_t> list = {1};
    for (std::size_t k = sizes.size(); k > 0; --k)
      list.insert(list.begin(), list[0] * sizes[k - 1]);
    return list;
  }
  [[nodiscard]] std::vector<float> apart(const std::vector<float>& packed) const {
    std::vector<float> values(place(rows - 1, length() - 1) + 1, nan_value);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t i = 0; i < length(); ++i)
        values[place(row, i)] = packed[static_cast<std::size_t>(row * length() + i)];
    }
    return values;
  }
  /// A launch of these loops; each list in `strides` is an operand's.
  [[nodiscard]] Call call(std::vector<void*> buffers,
                          const std::vector<std::vector<int64_t>>& strides, int threads) const {
    Call call = {.buffers = std::move(buffers), .sizes = {rows}, .strides = {}, .threads = threads};
    call.sizes.insert(call.sizes.end(), sizes.begin(), sizes.end());
    for (const auto& list : strides)
      call.strides.insert(call.strides.end(), list.begin(), list.end());
    return call;
  }
};

template <class R>
void check_parts(const Parts& parts, Combine combine, DType out, Device::Kind kind) {
  const auto values = RandomNumbers(21).reals<float>(parts.rows * parts.length());
  Kernel kernel = reduction(combine, f32, out, Order::lanes);
  std::vector<float> packed = values, apart = parts.apart(values);
  const auto expected = reduce<float, R>(kernel, packed, {parts.rows, parts.length()},
                                         {parts.length(), 1}, Device::Kind::reference, 1);
  kernel.reduced_loops = static_cast<uint8_t>(parts.sizes.size());
  std::vector<int64_t> of_result(parts.sizes.size() + 1, 0);
  of_result[0] = 1;
  for (const int threads : {1, 2, 3}) {
    std::vector<R> result(static_cast<std::size_t>(parts.rows));
    parts.call({apart.data(), result.data()}, {parts.strides(), of_result}, threads)
        .run(kernel, kind);
    CHECK(same_bits(result, expected));
  }
}

const std::vector<std::vector<int64_t>> sizes_of_parts = {
    {3, 7},    {5, 64},   {33, 130},   {2, 9000},        {300, 31},
    {2, 3, 5}, {1, 3, 5}, {7, 3, 300}, {2, 2, 2, 2, 700}};

}  // namespace

TEST_CASE("rows in parts are reduced as rows that lie as one", "[reduction]") {
  const auto kind = GENERATE(Device::Kind::cpu, Device::Kind::reference);
  const auto step = GENERATE(int64_t{1}, int64_t{2});
  for (const auto& sizes : sizes_of_parts) {
    CAPTURE(sizes, step);
    const Parts parts = {.rows = 5, .sizes = sizes, .step = step};
    check_parts<float>(parts, Combine::add, f32, kind);
    check_parts<float>(parts, Combine::maximum, f32, kind);
    check_parts<int64_t>(parts, Combine::arg_maximum, i64, kind);
  }
}

TEST_CASE("what is stored for each element of rows in parts may lie in parts, too", "[reduction]") {
  const auto kind = GENERATE(Device::Kind::cpu, Device::Kind::reference);
  const auto [is_kept, alias] =
      GENERATE(table<bool, int16_t>({{false, -1}, {true, -1}, {true, 1}}));
  Kernel kernel = three_passes(is_kept, alias);
  for (const auto& sizes : sizes_of_parts) {
    CAPTURE(sizes, is_kept, alias);
    const Parts parts = {.rows = 5, .sizes = sizes, .step = 2};
    kernel.reduced_loops = static_cast<uint8_t>(sizes.size());
    auto values = RandomNumbers(22).reals<float>(parts.rows * parts.length());
    auto apart = parts.apart(values);
    const auto packed_strides = parts.packed_strides(), strides = parts.strides();
    const auto run = [&](const float* x, const auto& x_strides, float* out, const auto& out_strides,
                         int threads) {
      std::vector<void*> buffers = {const_cast<float*>(x), out};
      std::vector<std::vector<int64_t>> of_operands = {x_strides, out_strides};
      if (is_kept) {
        buffers.push_back(nullptr);
        of_operands.push_back(packed_strides);
      }
      parts.call(buffers, of_operands, threads).run(kernel, kind);
    };
    std::vector<float> expected(values.size());
    run(values.data(), packed_strides, expected.data(), packed_strides, 1);
    const bool is_in_place = alias >= 0;  // what is kept lies as one, and so does where
    for (const int threads : {1, 2, 3}) {
      std::vector<float> out(is_in_place ? values.size() : apart.size(), nan_value);
      run(apart.data(), strides, out.data(), is_in_place ? packed_strides : strides, threads);
      CHECK(same_bits(out, is_in_place ? expected : parts.apart(expected)));
    }
  }
}

TEST_CASE("a softmax in three passes runs in one launch", "[reduction]") {
  const auto kind = GENERATE(Device::Kind::cpu, Device::Kind::reference);
  const auto [is_kept, alias] =
      GENERATE(table<bool, int16_t>({{false, -1}, {true, -1}, {true, 1}}));
  const Kernel kernel = three_passes(is_kept, alias);
  for (const Extent extent : {Extent{3, 100}, Extent{1, 40000}}) {
    const auto count = extent.rows * extent.n;
    auto x = integers_of<uint8_t>(count, 8);
    std::vector<float> values(x.begin(), x.end());
    for (const int threads : {1, 2, 3}) {
      std::vector<float> out(values.size());
      Call call = {.buffers = {values.data(), out.data()},
                   .sizes = {extent.rows, extent.n},
                   .strides = {extent.n, 1, extent.n, 1},
                   .threads = threads};
      if (is_kept) {
        call.buffers.push_back(nullptr);
        call.strides.insert(call.strides.end(), {extent.n, 1});
      }
      call.run(kernel, kind);
      bool is_right = true;
      for (int64_t r = 0; r < extent.rows; ++r) {
        const auto begin = values.begin() + r * extent.n;
        const float maximum = *std::max_element(begin, begin + extent.n);
        float sum = 0;  // exact: integers below 2^24
        for (int64_t i = 0; i < extent.n; ++i) sum += begin[i] - maximum;
        for (int64_t i = 0; i < extent.n; ++i) {
          is_right &= out[static_cast<std::size_t>(r * extent.n + i)] == (begin[i] - maximum) * sum;
        }
      }
      CHECK(is_right);
    }
  }
}
