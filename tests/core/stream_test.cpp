#include "core/stream.h"

#include "core/kernel.h"
#include "core/library.h"
#include "core/pick_loop.h"
#include "eager/all_ops.h"
#include "nitinol.h"
#include "tests/backends/kernels.h"
#include "tests/on_threads.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

TEST_CASE("streaming copies any number of bytes to any place, and nothing else") {
  std::vector<uint8_t> from(700), expected;
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<uint8_t>(i * 7 + 1);
  for (const std::size_t start : {0, 1, 4, 16, 63}) {
    for (const std::size_t bytes : {0, 1, 63, 64, 65, 127, 128, 191, 512, 600}) {
      INFO(bytes << " bytes to place " << start);
      std::vector<uint8_t> to(800, 255);
      expected = to;
      std::copy_n(from.begin() + 3, bytes, expected.begin() + static_cast<std::ptrdiff_t>(start));
      stream(to.data() + start, from.data() + 3, bytes);
      finish_streams();
      CHECK(to == expected);
    }
  }
}

namespace {

const Op& op_named(std::string_view name) {
  return **std::ranges::find(all_ops(), name, &Op::name);
}

/// The first element that begins a cache line.
std::size_t first_in_line(const std::vector<float>& values) {
  const auto place = reinterpret_cast<std::uintptr_t>(values.data());
  return (64 - place % 64) % 64 / sizeof(float);
}

/// x + y, or x + a number, into rows that lie `gap` elements apart, the first at a cache line if
/// they are of an even length.
void check_streamed(const std::vector<int64_t>& sizes, int64_t gap, bool is_number, int threads) {
  const StrideClass inner = StrideClass::one;
  const Operand number = {.role = Role::scalar, .dtype = f32, .inner = StrideClass::zero};
  const Operand input = {.role = Role::input, .dtype = f32, .inner = inner};
  const std::vector<Operand> operands = {
      input, is_number ? number : input, {.role = Role::output, .dtype = f32, .inner = inner}};
  Kernel kernel = elementwise(op_named("add"), operands);
  REQUIRE(kernel.prebuilt.loops.pick() != nullptr);
  const int64_t columns = sizes.back();
  const int64_t rows = sizes.size() == 1 ? 1 : sizes[0];
  const auto room = static_cast<std::size_t>(rows * (columns + gap) + 17);
  test::RandomNumbers numbers(5);
  auto x = numbers.reals<float>(rows * columns), y = numbers.reals<float>(rows * columns);
  std::vector<std::vector<float>> results;
  for (const Stores stores : {Stores::cached, Stores::non_temporal}) {
    kernel.stores = stores;
    std::vector<float> out(room, -1);
    const std::size_t start = first_in_line(out) + static_cast<std::size_t>(columns % 2);
    Call call = {.buffers = {x.data(), is_number ? nullptr : y.data(), out.data() + start},
                 .sizes = sizes,
                 .strides = {},
                 .scalars = {0, 0x40400000, 0},
                 .threads = threads};
    for (const int64_t step : {columns, is_number ? 0 : columns, columns + gap}) {
      if (sizes.size() == 2) call.strides.push_back(step);
      call.strides.push_back(step == 0 ? 0 : 1);
    }
    call.run(kernel);
    CHECK(out[start] == x[0] + (is_number ? 3.0F : y[0]));
    // From the same place on, whatever lies before it.
    std::rotate(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(start), out.end());
    results.push_back(std::move(out));
  }
  CHECK(results[0] == results[1]);
}

}  // namespace

TEST_CASE("prebuilt loops that stream their result store what others do, where others do") {
  for (const bool is_number : {false, true}) {
    for (const int threads : {1, 2}) {
      for (const int64_t n : {1, 16, 127, 128, 129, 1000, 4100, 100'003}) {
        INFO(n << " elements, " << threads << " threads, number " << is_number);
        check_streamed({n}, 0, is_number, threads);
      }
      for (const int64_t columns : {3, 65, 192, 200, 700, 4096, 5001}) {
        for (const int64_t gap : {0, 5}) {
          INFO("rows of " << columns << ", " << gap << " apart, number " << is_number);
          check_streamed({90, columns}, gap, is_number, threads);
        }
      }
    }
  }
}

TEST_CASE("results larger than the caches are those of their parts") {
  constexpr int64_t n = (int64_t{9} << 20) + 13;  // 36 MiB
  std::vector<float> numbers(n);
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i % 1003);
  const Tensor x = from_span(std::span<const float>(numbers), {n}), y = sqrt(x);
  const Tensor sum = x + y, scaled = x * 0.3;
  const Tensor large = where(x > y, x, y);
  for (const int64_t first : {int64_t{0}, int64_t{1'000'001}, n - 1000}) {
    const auto part = [&](const Tensor& whole) { return slice(whole, 0, {first, first + 1000}); };
    const Tensor a = copy(part(x)), b = sqrt(a);
    CHECK(same_bits(part(y), b));
    CHECK(same_bits(part(sum), a + b));
    CHECK(same_bits(part(scaled), a * 0.3));
    CHECK(same_bits(part(large), where(a > b, a, b)));
  }
}
