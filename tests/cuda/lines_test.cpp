// Sorting, masks, scattered values and scans on a GPU against the host, bit by bit: lines from one
// element to several tiles of a block of threads, packed and not. In ctest's cuda.fake.calls.
#include "nitinol.h"
#include "tests/cuda/using_fake.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// On the host: numbers of which some are equal, with zeros of both signs, infinities and NaN.
Tensor values_of(DType dtype, const Shape& shape) {
  const int64_t count = element_count(shape);
  const Tensor both = concat(
      {edge_values(dtype).to(Device{}), random_values(dtype, {count / 2 + 1}, 3).to(Device{})}, 0);
  const Tensor places = arange(count, i64, Device{}) * 7919 % both.shape()[0];
  return reshape(take(both, places, 0), shape);
}

/// `function` gives the same bits there.
template <class F, class... Tensors>
void check(const F& function, const Tensors&... given) {
  CHECK(same_bits(function(given.to(gpu)...).to(Device{}), function(given...)));
}

/// With the axis -1 packed, and lying across lines.
template <class F>
void check_both_ways(const F& function, const Tensor& x) {
  check(function, x);
  check([&](const Tensor& t) { return function(swapaxes(t, 0, 1)); }, row_major(swapaxes(x, 0, 1)));
}

const std::vector<Shape> shapes = {{3, 1},    {300, 3},  {2, 128},  {5, 129}, {3, 700},
                                   {2, 2049}, {2, 4097}, {1, 9000}, {0, 5},   {4, 0}};

}  // namespace

TEST_CASE("lines of all lengths are sorted on a GPU as on the host", "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : {u8, i16, i64, bf16, f32, f64}) {
    for (const Shape& shape : shapes) {
      INFO(name_of(dtype) << to_string(shape));
      const Tensor x = values_of(dtype, shape);
      for (const SortOrder order : {SortOrder::ascending, SortOrder::descending}) {
        check_both_ways([&](const Tensor& t) { return sort(t, -1, order); }, x);
        check_both_ways([&](const Tensor& t) { return argsort(t, -1, order); }, x);
      }
    }
    check([](const Tensor& t) { return argsort(t, -1, SortOrder::descending); },
          full({5000}, 1, dtype, Device{}));
    const Tensor equal = full({5000}, 1, dtype, Device{});
    for (const Tensor& x : {values_of(dtype, {2, 5000}), concat({equal, equal * 2}, 0)}) {
      INFO("the first of " << name_of(dtype) << to_string(x.shape()));
      for (const int64_t count : {1, 5, 600})
        check([&](const Tensor& t) { return topk(t, count).indices; }, x);
    }
  }
}

TEST_CASE("scans of all lengths on a GPU have the host's bits", "[cuda]") {
  if (!has_gpu()) return;
  std::vector<Shape> lengths = shapes;
  for (const int64_t length :
       {15, 16, 17, 255, 256, 257, 4095, 4096, 4352, 8191, 8192, 8193, 70000})
    lengths.push_back({2, length});
  for (const DType dtype : {i32, u64, bf16, f32, f64}) {
    for (const Shape& shape : lengths) {
      INFO(name_of(dtype) << to_string(shape));
      const Tensor x = random_values(dtype, shape, 5).to(Device{});
      check_both_ways([](const Tensor& t) { return cumsum(t, -1); }, x);
    }
    for (const Shape& shape : {Shape{3, 700}, Shape{2, 9000}}) {
      const Tensor x = values_of(dtype, shape);
      check_both_ways([](const Tensor& t) { return cummax(t, -1); }, x);
      check_both_ways([](const Tensor& t) { return cumprod(t, -1); }, x);
      if (is_floating(dtype))
        check_both_ways([](const Tensor& t) { return logcumsumexp(t, -1); }, x);
    }
  }
  check([](const Tensor& t) { return cumsum(t, 1); },
        random_values(f32, {3, 5000, 2}, 5).to(Device{}));
}

TEST_CASE("masks of all lengths choose on a GPU as on the host", "[cuda]") {
  if (!has_gpu()) return;
  for (const int64_t length : {1, 15, 16, 17, 4095, 4097, 10000}) {
    for (const double most : {-10.0, 0.0, 10.0}) {  // none, some, all
      INFO(length << " below " << most);
      const Tensor x = random_values(f32, {length, 3}, 6).to(Device{});
      const auto mask = [&](const Tensor& t) { return t.at({all_of_axis, 1}) < most; };
      check([&](const Tensor& t) { return masked_select(t, mask(t)); }, x);
      check([&](const Tensor& t) { return argwhere(mask(t)); }, x);
      check([&](const Tensor& t) { return masked_select(t, mask(t), 20); }, x);
      check([&](const Tensor& t) { return argwhere(mask(t), 20); }, x);
    }
  }
}

TEST_CASE("scattered values meet on a GPU in the host's order", "[cuda]") {
  if (!has_gpu()) return;
  for (const int64_t places : {1, 7, 300, 70000}) {
    for (const int64_t count : {1, 6, 300, 5000}) {
      INFO(count << " to " << places);
      const Tensor at = random_values(i64, {count}, 7).to(Device{}) * 7919 % places;
      const Tensor values = random_values(f32, {count}, 8).to(Device{});
      const Tensor rows = random_values(bf16, {count, 3}, 9).to(Device{});
      check([&](const Tensor& i, const Tensor& v) { return scatter_add(v, i, places); }, at,
            values);
      check([&](const Tensor& i, const Tensor& v) { return scatter_add(v, i, places); }, at, rows);
      check([&](const Tensor& i,
                const Tensor& v) { return scatter_add(swapaxes(v, 0, 1), i, places); },
            reshape(concat({at, at}, 0), {2, count}),
            reshape(concat({values, values}, 0), {count, 2}));
      check(
          [&](const Tensor& i, const Tensor& v) {
            return zeros({places, 3}, v.dtype(), v.device()).at({i}).set(v);
          },
          at, rows);
      check(
          [&](const Tensor& i, const Tensor& v) {
            return ones({places}, v.dtype(), v.device()).at({i}).maximum(v);
          },
          at, values);
    }
  }
}
