// Every kind of stage code against plain loops over indices, on random shapes and strides.
#include "core/error.h"
#include "core/kernel.h"
#include "core/library.h"
#include "core/loop.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// How an operand lies in memory: strides in elements, and how many elements that spans.
struct Layout {
  std::vector<int64_t> strides;
  int64_t span = 1;
};

/// Random strides: a permutation of a contiguous layout, perhaps with gaps, and, if allowed, with
/// repeated dimensions.
Layout random_layout(RandomNumbers& numbers, const std::vector<int64_t>& sizes, bool may_repeat) {
  std::vector<std::size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (numbers.below(2) == 0) {
    for (std::size_t i = order.size(); i > 1; --i) {
      std::swap(order[i - 1],
                order[static_cast<std::size_t>(numbers.below(static_cast<int64_t>(i)))]);
    }
  }
  Layout layout;
  layout.strides.resize(sizes.size());
  const int64_t gap = numbers.below(4) == 0 ? 2 : 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    const std::size_t axis = order[i];
    if (may_repeat && numbers.below(5) == 0) continue;  // stride 0
    layout.strides[axis] = layout.span * gap;
    layout.span *= std::max<int64_t>(sizes[axis], 1) * gap;
  }
  return layout;
}

StrideClass class_of(const std::vector<int64_t>& strides, std::size_t axis) {
  if (strides.empty()) return StrideClass::one;
  if (strides[axis] == 0) return StrideClass::zero;
  return strides[axis] == 1 ? StrideClass::one : StrideClass::any;
}

/// The same of an input, one that is turned if it lies across the rows.
StrideClass class_turned(const std::vector<int64_t>& strides, std::size_t axis) {
  const bool lies_across = axis > 0 && strides[axis - 1] == 1 && strides[axis] > 1;
  return lies_across ? StrideClass::one : class_of(strides, axis);
}

template <class F>
void for_each_index(const std::vector<int64_t>& sizes, F body) {
  std::vector<int64_t> index(sizes.size(), 0);
  if (std::ranges::find(sizes, 0) != sizes.end()) return;
  for (;;) {
    body(index);
    std::size_t axis = sizes.size();
    while (axis > 0 && ++index[axis - 1] == sizes[axis - 1]) index[--axis] = 0;
    if (axis == 0) return;
  }
}

int64_t at(const std::vector<int64_t>& index, const std::vector<int64_t>& strides) {
  return std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
}

std::vector<int64_t> random_sizes(RandomNumbers& numbers, int64_t rank) {
  static constexpr int64_t choices[] = {1, 1, 2, 3, 5, 17, 40, 600};
  std::vector<int64_t> sizes;
  int64_t count = 1;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t size = choices[numbers.below(8)];
    if (count * size > 20000) size = 1;
    if (numbers.below(60) == 0) size = 0;
    sizes.push_back(size);
    count *= std::max<int64_t>(size, 1);
  }
  return sizes;
}

struct Multiply {
  template <class X>
  constexpr X operator()(X a, X b) const {
    return a * b;
  }
};

/// out = a * b
Kernel product(DType dtype, StrideClass a, StrideClass b, StrideClass out, bool with_loops) {
  Kernel kernel;
  kernel.operands = {
      {Role::input, dtype, a, -1}, {Role::input, dtype, b, -1}, {Role::output, dtype, out, -1}};
  Stage stage;
  stage.sources = {{Source::Kind::operand, 0}, {Source::Kind::operand, 1}};
  const ScalarType type = compute_type(dtype);
  argument(stage.program, type, 0);
  argument(stage.program, type, 1);
  emit(stage.program, {.op = ScalarOp::mul, .type = type, .a = 0, .b = 1});
  stage.sinks = {{Sink::Kind::store, 2, 2}};
  kernel.stages = {stage};
  if (with_loops) {
    kernel.prebuilt.loops = dtype == f64   ? loops_of<Multiply, double, double, double>
                            : dtype == i16 ? loops_of<Multiply, int16_t, int16_t, int16_t>
                                           : loops_of<Multiply, float, float, float>;
  }
  return kernel;
}

Kernel copy(DType dtype, StrideClass from, StrideClass to) {
  Kernel kernel;
  kernel.operands = {{Role::input, dtype, from, -1}, {Role::output, dtype, to, -1}};
  Stage stage;
  stage.sources = {{Source::Kind::operand, 0}};
  argument(stage.program, compute_type(dtype), 0);
  stage.sinks = {{Sink::Kind::store, 1, 0}};
  kernel.stages = {stage};
  return kernel;
}

/// input + number + position
Kernel sum_of_three() {
  Kernel kernel;
  kernel.operands = {{.role = Role::input},
                     {.role = Role::scalar, .inner = StrideClass::zero},
                     {.role = Role::position, .dtype = i64, .inner = StrideClass::any},
                     {.role = Role::output}};
  Stage stage;
  const Expr x = argument(stage.program, ScalarType::f32, 0);
  const Expr y = argument(stage.program, ScalarType::f32, 1);
  const Expr i = argument(stage.program, ScalarType::i64, 2);
  stage.sources = {
      {Source::Kind::operand, 0}, {Source::Kind::operand, 1}, {Source::Kind::operand, 2}};
  stage.sinks = {{Sink::Kind::store, 3, (x + y + convert<float>(i)).id}};
  kernel.stages = {stage};
  return kernel;
}

std::vector<int64_t> joined(std::initializer_list<std::vector<int64_t>> lists) {
  std::vector<int64_t> all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

template <class T>
void check_product(RandomNumbers& numbers, const std::vector<int64_t>& sizes, const Layout& a,
                   const Layout& b, const Layout& out, bool is_specialised, bool turns = false) {
  auto x = numbers.reals<T>(a.span), y = numbers.reals<T>(b.span);
  std::vector<T> expected(static_cast<std::size_t>(out.span), T(77));
  for_each_index(sizes, [&](const std::vector<int64_t>& index) {
    expected[static_cast<std::size_t>(at(index, out.strides))] =
        static_cast<T>(x[static_cast<std::size_t>(at(index, a.strides))] *
                       y[static_cast<std::size_t>(at(index, b.strides))]);
  });
  const std::size_t last = sizes.empty() ? 0 : sizes.size() - 1;
  const auto class_of_input = [turns](const Layout& layout, std::size_t axis) {
    return turns ? class_turned(layout.strides, axis) : class_of(layout.strides, axis);
  };
  for (const bool with_loops : {false, true}) {
    const Kernel kernel = product(dtype_of<T>(), class_of_input(a, last), class_of_input(b, last),
                                  class_of(out.strides, last), with_loops);
    // Kernels that differ in their loops alone would share an entry.
    clear_executables();
    for (const int threads : {1, 2, 3}) {
      std::vector<T> result(expected.size(), T(77));
      const Call call = {.buffers = {x.data(), y.data(), result.data()},
                         .sizes = sizes,
                         .strides = joined({a.strides, b.strides, out.strides}),
                         .threads = threads,
                         .is_specialised = is_specialised};
      call.run(kernel, with_loops ? Device::Kind::cpu : Device::Kind::reference);
      CHECK(std::memcmp(result.data(), expected.data(), sizeof(T) * result.size()) == 0);
    }
  }
}

template <class T>
void check_product(RandomNumbers& numbers, int64_t round) {
  const std::vector<int64_t> sizes = random_sizes(numbers, round % 9);
  const Layout a = random_layout(numbers, sizes, true), b = random_layout(numbers, sizes, true),
               out = random_layout(numbers, sizes, false);
  check_product<T>(numbers, sizes, a, b, out, round % 2 == 0);
}

}  // namespace

TEST_CASE("elementwise kernels visit every point of any strides", "[loop_nest]") {
  RandomNumbers numbers(5);
  for (int64_t round = 0; round < 150; ++round) {
    CAPTURE(round);
    check_product<float>(numbers, round);
    check_product<double>(numbers, round);
    check_product<int16_t>(numbers, round);
  }
}

TEST_CASE("short rows become long ones beside operands that repeat", "[loop_nest]") {
  RandomNumbers numbers(9);
  const std::vector<int64_t> sizes = {3, 900, 5};
  const Layout packed = {{4500, 5, 1}, 13500};
  const Layout others[] = {{{5, 0, 1}, 15}, {{0, 0, 1}, 5},      {{7, 0, 1}, 19},
                           {{1, 0, 0}, 3},  {{900, 1, 0}, 2700}, {{4500, 1, 900}, 13500}};
  for (const Layout& other : others) {
    CAPTURE(other.strides);
    check_product<float>(numbers, sizes, packed, other, packed, false);
    check_product<double>(numbers, sizes, other, packed, packed, true);
    check_product<int16_t>(numbers, sizes, other, other, packed, false);
    check_product<float>(numbers, sizes, packed, other, {{5, 15, 1}, 13500}, false);
  }
}

TEST_CASE("inputs that lie across the rows are turned", "[loop_nest]") {
  RandomNumbers numbers(10);
  for (const int64_t rows : {2, 16, 33, 200}) {
    for (const int64_t columns : {3, 64, 130}) {
      const std::vector<int64_t> sizes = {3, rows, columns};
      const int64_t plane = rows * columns;
      const Layout packed = {{plane, columns, 1}, 3 * plane},
                   across = {{plane, 1, rows}, 3 * plane}, apart = {{1, 3, 3 * rows}, 3 * plane},
                   in_planes = {{0, 1, rows + 5}, plane + 5 * columns};
      for (const Layout& other : {packed, across, apart, in_planes}) {
        CAPTURE(sizes, other.strides);
        check_product<float>(numbers, sizes, across, other, packed, false, true);
        check_product<double>(numbers, sizes, other, in_planes, packed, true, true);
        check_product<int16_t>(numbers, sizes, other, across, across, false, true);
      }
    }
  }
}

TEST_CASE("copies move any strides", "[loop_nest]") {
  RandomNumbers numbers(6);
  for (int64_t round = 0; round < 200; ++round) {
    CAPTURE(round);
    const std::vector<int64_t> sizes = random_sizes(numbers, round % 9);
    const Layout from = random_layout(numbers, sizes, true),
                 to = random_layout(numbers, sizes, false);
    auto x = numbers.reals<float>(from.span);
    std::vector<float> result(static_cast<std::size_t>(to.span), 77), expected = result;
    for_each_index(sizes, [&](const std::vector<int64_t>& index) {
      expected[static_cast<std::size_t>(at(index, to.strides))] =
          x[static_cast<std::size_t>(at(index, from.strides))];
    });
    const std::size_t last = sizes.empty() ? 0 : sizes.size() - 1;
    const Call call = {.buffers = {x.data(), result.data()},
                       .sizes = sizes,
                       .strides = joined({from.strides, to.strides}),
                       .threads = static_cast<int>(round % 3) + 1};
    call.run(copy(f32, class_of(from.strides, last), class_of(to.strides, last)));
    CHECK(result == expected);
  }
}

TEST_CASE("elements are repeated wherever they lie", "[loop_nest]") {
  RandomNumbers numbers(11);
  for (const int64_t times : {2, 3, 8, 9}) {
    for (const int64_t step : {1, 2, -1, 30}) {
      constexpr int64_t rows = 3, columns = 700;
      const int64_t span = 32 * rows * columns;
      auto x = numbers.reals<float>(span);
      std::vector<float> result(static_cast<std::size_t>(rows * columns * times)), expected;
      const int64_t first = step < 0 ? span - 1 : 0, row_step = step == 30 ? 1 : step * columns;
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          const int64_t at = first + i * row_step + j * step;
          expected.insert(expected.end(), static_cast<std::size_t>(times),
                          x[static_cast<std::size_t>(at)]);
        }
      }
      const Call call = {.buffers = {x.data() + first, result.data()},
                         .sizes = {rows, columns, times},
                         .strides = {row_step, step, 0, columns * times, times, 1}};
      call.run(copy(f32, StrideClass::zero, StrideClass::one));
      CHECK(result == expected);
    }
  }
}

TEST_CASE("half precision operands compute in float and round once", "[loop_nest]") {
  for (const int64_t n : {1, 7, 512, 513, 2000}) {
    std::vector<uint16_t> x(static_cast<std::size_t>(n)), y(x), results[2];
    RandomNumbers numbers(7);
    for (auto& value : x) value = static_cast<uint16_t>(numbers.next());
    for (auto& value : y) value = static_cast<uint16_t>(numbers.next());
    for (const DType dtype : {f16, bf16}) {
      for (const bool with_loops : {false, true}) {
        clear_executables();
        auto& result = results[with_loops];
        result.assign(x.size(), 0);
        const Call call = {
            .buffers = {x.data(), y.data(), result.data()}, .sizes = {n}, .strides = {1, 1, 1}};
        constexpr auto one = StrideClass::one;
        call.run(product(dtype, one, one, one, with_loops),
                 with_loops ? Device::Kind::cpu : Device::Kind::reference);
      }
      const auto is_nan = [&](uint16_t bits) {
        return (bits & 0x7fff) > (dtype == f16 ? 0x7c00 : 0x7f80);
      };
      for (std::size_t i = 0; i < x.size(); ++i) {
        if (is_nan(results[0][i]) && is_nan(results[1][i])) continue;
        CHECK(results[0][i] == results[1][i]);
      }
    }
  }
}

TEST_CASE("a number fills, a position counts", "[loop_nest]") {
  Kernel fill = copy(f32, StrideClass::zero, StrideClass::one);
  fill.operands[0].role = Role::scalar;
  std::vector<float> result(1000);
  Call call = {.buffers = {nullptr, result.data()},
               .sizes = {1000},
               .strides = {0, 1},
               .scalars = {std::bit_cast<uint32_t>(2.5F), 0}};
  for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
    result.assign(1000, 0);
    call.run(fill, kind);
    CHECK(std::ranges::count(result, 2.5F) == 1000);
  }
  Kernel count = copy(i64, StrideClass::any, StrideClass::one);
  count.operands[0].role = Role::position;
  std::vector<int64_t> numbers(6);
  call = {.buffers = {nullptr, numbers.data()},
          .sizes = {2, 3},
          .strides = {100, 2, 3, 1},
          .offsets = {7, 0}};
  call.run(count, Device::Kind::reference);
  CHECK(numbers == std::vector<int64_t>{7, 9, 11, 107, 109, 111});
}

TEST_CASE("launches that are prepared give what others give", "[loop_nest]") {
  std::vector<float> x(4000, 3), y(4000);
  Kernel sum = sum_of_three();
  Call call = {.buffers = {x.data(), nullptr, nullptr, y.data()},
               .sizes = {40, 100},
               .strides = {100, 1, 0, 0, 200, 2, 100, 1},
               .offsets = {0, 0, 7, 0},
               .scalars = {0, std::bit_cast<uint32_t>(0.5F), 0, 0}};
  for (const int threads : {1, 2}) {
    for (const bool is_specialised : {false, true}) {
      CAPTURE(threads, is_specialised);
      call.threads = threads;
      call.is_specialised = is_specialised;
      y.assign(4000, 0);
      call.run(sum, Device::Kind::reference);
      bool is_right = true;
      for (std::size_t i = 0; i < y.size(); ++i)
        is_right &= y[i] == 3.5F + static_cast<float>(7 + 2 * i);
      CHECK(is_right);
      // In place of an input, which the kernel does not say, and then does.
      call.buffers[3] = x.data();
      CHECK_THROWS_AS(call.run(sum, Device::Kind::reference), Error);
      sum.operands[3].alias = 0;
      call.run(sum, Device::Kind::reference);
      CHECK(x == y);
      x.assign(4000, 3);
      sum.operands[3].alias = -1;
      call.buffers[3] = y.data();
    }
  }
}

TEST_CASE("arguments of other classes than the kernel's are refused", "[loop_nest]") {
  std::vector<float> x(20), y(20);
  const Kernel kernel = copy(f32, StrideClass::one, StrideClass::one);
  const auto launch = [&](std::vector<void*> buffers, std::vector<int64_t> sizes,
                          std::vector<int64_t> strides) {
    const Call call = {
        .buffers = std::move(buffers), .sizes = std::move(sizes), .strides = std::move(strides)};
    call.run(kernel);
  };
  CHECK_NOTHROW(launch({x.data(), y.data()}, {5}, {1, 1}));
  CHECK_THROWS_AS(launch({x.data(), y.data()}, {5}, {2, 1}), Error);
  CHECK_THROWS_AS(launch({x.data(), y.data()}, {5}, {1, 0}), Error);
  CHECK_THROWS_AS(launch({x.data(), x.data()}, {5}, {1, 1}), Error);
  CHECK_THROWS_AS(launch({x.data(), y.data()}, {5}, {1}), Error);
  // Loops of one point are dropped by who launches (core/loop_nest.h).
  CHECK_THROWS_AS(launch({x.data(), y.data()}, {5, 1}, {1, 9, 1, 9}), Error);
}
