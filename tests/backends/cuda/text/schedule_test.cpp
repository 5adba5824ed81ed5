#include "backends/cuda/text/schedule.h"

#include "backends/cuda/runtime/call.h"
#include "backends/cuda/text/printer.h"
#include "core/error.h"
#include "core/kernel.h"
#include "eager/ops/ops.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

using namespace nitinol;
using namespace nitinol::cuda;
using Shape_ = Schedule::Shape;

namespace {

struct Sized {
  Kernel kernel;
  std::vector<int64_t> sizes, strides;
  std::vector<void*> buffers;
  [[nodiscard]] Launch launch() const {
    return {.buffers = buffers, .sizes = sizes, .strides = strides, .offsets = {}, .scalars = {}};
  }
  [[nodiscard]] Schedule schedule() const { return schedule_of(kernel, launch()); }
};

/// Sums of contiguous rows, or columns, of `rows` by `length`.
Sized sums(Order order, DType dtype, int64_t rows, int64_t length, uintptr_t address = 4096) {
  auto* const at = reinterpret_cast<void*>(address);  // NOLINT
  const bool is_rows = order == Order::lanes;
  return {test::reduction(Combine::add, dtype, dtype, order),
          {rows, length},
          {is_rows ? length : 1, is_rows ? 1 : rows, 1, 0},
          {at, at}};
}

Sized copies(std::vector<int64_t> sizes, std::vector<int64_t> strides, uintptr_t address = 4096,
             DType dtype = u8) {
  auto* const at = reinterpret_cast<void*>(address);  // NOLINT
  const StrideClass inner = strides.back() == 1 ? StrideClass::one : StrideClass::any;
  const std::vector<Operand> operands = {{Role::input, dtype, inner}, {Role::output, dtype, inner}};
  Sized sized = {test::elementwise(*find_op("abs"), operands), std::move(sizes), strides, {at, at}};
  sized.strides.insert(sized.strides.end(), strides.begin(), strides.end());
  return sized;
}

}  // namespace

TEST_CASE("indices are of 64 bits where they have to be", "[cuda]") {
  constexpr int64_t far = int64_t{1} << 31;
  CHECK(!copies({1000}, {1}).schedule().is_wide);
  CHECK(copies({far}, {1}).schedule().is_wide);
  CHECK(copies({3, 5}, {far, 1}).schedule().is_wide);
  CHECK(copies({3, 5}, {-far, 1}).schedule().is_wide);
  CHECK(copies({2, 2, 2}, {far / 2, far / 2 + 1, 1}).schedule().is_wide);
  CHECK(!copies({1, 5}, {far, 1}).schedule().is_wide);  // one step is none
  CHECK(sums(Order::lanes, u8, 1 << 16, 1 << 15).schedule().is_wide);
  CHECK(sums(Order::sequential, u8, 1 << 16, 1 << 15).schedule().is_wide);
}

TEST_CASE("vectors are as wide as addresses and strides allow", "[cuda]") {
  CHECK(copies({1000}, {1}, 4096, f32).schedule().width == 4);
  CHECK(copies({1000}, {1}, 4096 + 8, f32).schedule().width == 2);
  CHECK(copies({1000}, {1}, 4096 + 4, f32).schedule().width == 1);
  CHECK(copies({1000}, {1}, 4096, f64).schedule().width == 2);
  CHECK(copies({1000}, {1}, 4096, i16).schedule().width == 8);
  CHECK(copies({10, 1000}, {1002, 1}, 4096, f32).schedule().width == 2);
  CHECK(copies({10, 1000}, {1001, 1}, 4096, f32).schedule().width == 1);
  CHECK(copies({1000}, {3}, 4096, f32).schedule().width ==
        1);  // neighbours are not beside each other
}

TEST_CASE("rows and columns are cut by their lengths", "[cuda]") {
  CHECK(sums(Order::lanes, f32, 4096, 10).schedule().threads == 8);
  CHECK(sums(Order::lanes, f32, 4096, 1024).schedule().shape == Shape_::rows);
  CHECK(sums(Order::lanes, f32, 4096, 1025).schedule().shape == Shape_::blocks);
  CHECK(!sums(Order::lanes, f32, 4096, 100000).schedule().is_split);
  CHECK(sums(Order::lanes, f32, 2, 100000).schedule().is_split);
  CHECK(sums(Order::sequential, f32, 1000, 1000).schedule().is_split);
  CHECK(!sums(Order::sequential, f32, 100000, 1000).schedule().is_split);
  CHECK(sums(Order::sequential, f32, 100000, 100).schedule().threads == 1);
}

TEST_CASE("results of one point that take long are computed side by side", "[cuda]") {
  const std::vector<Operand> operands = {{Role::input, f64, StrideClass::one},
                                         {Role::output, f64, StrideClass::one}};
  auto* const at = reinterpret_cast<void*>(uintptr_t{4096});  // NOLINT
  Sized several = {test::elementwise(*find_op("lgamma"), operands), {1}, {1, 1, 1}, {at, at, at}};
  Stage& stage = several.kernel.stages[0];
  several.kernel.operands.push_back(operands[1]);
  stage.sinks.push_back({Sink::Kind::store, 2, stage.sinks[0].value});
  CHECK(several.schedule().threads == 2);
  CHECK(several.schedule().width == 1);
  several.sizes = {2};
  CHECK(several.schedule().threads == 1);
  several.sizes = {1};
  stage.sinks.push_back({Sink::Kind::check, 1, stage.sinks[0].value});
  CHECK(several.schedule().threads == 1);
  Sized short_one = copies({1}, {1}, 4096, f64);
  CHECK(short_one.schedule().threads == 1);
}

TEST_CASE("a launch names as many blocks as it has work for", "[cuda]") {
  const Sized copy = copies({1000}, {1}, 4096, f32);
  CHECK(call_of(copy.kernel, copy.schedule(), copy.launch(), {}).blocks ==
        std::vector<uint32_t>{1});
  const Sized sum = sums(Order::lanes, f32, 1, int64_t{1} << 22);
  const Schedule schedule = sum.schedule();
  const Call call = call_of(sum.kernel, schedule, sum.launch(), {});
  REQUIRE(call.blocks.size() == entry_count(sum.kernel, schedule));
  CHECK(call.blocks == std::vector<uint32_t>{512});  // the last of which stores the sum
  CHECK(workspace_of(sum.kernel, schedule, sum.launch()).counters == 1);
  const Sized huge = copies({int64_t{1} << 62}, {1});
  CHECK_THROWS_AS(call_of(huge.kernel, huge.schedule(), huge.launch(), {}), Error);
}
