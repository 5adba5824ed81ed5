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

TEST_CASE("a GPU draws the order that the host draws", "[cuda]") {
  if (!has_gpu()) return;
  for (const int64_t count : {0, 1, 2, 300, 1024, 1025, 5000, 263000}) {
    INFO(count);
    CHECK(same_bits(permutation(count, Generator(3, gpu)).to(Device{}),
                    permutation(count, Generator(3, Device{}))));
  }
}

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
    // Of many tiles, whose counts are added up in several steps.
    if (dtype == i64 || dtype == f32) {
      const Tensor many = values_of(dtype, {200'000});
      check([](const Tensor& t) { return sort(t); }, many);
      check([](const Tensor& t) { return argsort(t, 0, SortOrder::descending); }, many);
    }
    // As many as a tile, and one more, of lines that are long enough to choose from.
    const Tensor longest = values_of(dtype, {33000});
    for (const int64_t count : {2048, 2049, 4096, 4097})
      check([&](const Tensor& t) { return topk(t, count).indices; }, longest);
    check([](const Tensor& t) { return argsort(t, -1, SortOrder::descending); },
          full({5000}, 1, dtype, Device{}));
    const Tensor equal = full({5000}, 1, dtype, Device{});
    const Tensor mostly = concat({equal, equal * 2, equal}, 0);
    for (const Tensor& x : {values_of(dtype, {2, 5000}), equal, concat({equal, equal * 2}, 0),
                            stack({mostly, flip(mostly, 0), mostly * 2}, 0)}) {
      INFO("the first of " << name_of(dtype) << to_string(x.shape()));
      for (const int64_t count : {1, 5, 129, 600})
        check([&](const Tensor& t) { return topk(t, count).indices; }, x);
      check([&](const Tensor& t) { return topk(t, 7, 0).indices; },
            x.shape().size() == 1 ? x : row_major(swapaxes(x, 0, 1)));
    }
  }
}

TEST_CASE("scans of all lengths on a GPU have the host's bits", "[cuda]") {
  if (!has_gpu()) return;
  std::vector<Shape> lengths = shapes;
  for (const int64_t length :
       {15, 16, 17, 255, 256, 257, 4095, 4096, 4352, 8191, 8192, 8193, 70000})
    lengths.push_back({2, length});
  // More lines than a block of threads has side by side, and few.
  for (const Shape& shape :
       {Shape{15, 300}, Shape{16, 257}, Shape{17, 4097}, Shape{40, 33}, Shape{1, 66000}})
    lengths.push_back(shape);
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

TEST_CASE("popular places and integers get the host's sums on a GPU", "[cuda]") {
  if (!has_gpu()) return;
  // Groups of one value, of as many as a thread adds up alone, of more, of more than are loaded at
  // once, and around each of these numbers.
  std::vector<int64_t> named;
  for (const int64_t count : {1, 0, 16, 17, 63, 64, 65, 66, 127, 4095, 4096, 4097, 8192, 1}) {
    for (int64_t i = 0; i < count; ++i) named.push_back(count % 251);
  }
  const auto count = static_cast<int64_t>(named.size());
  const Tensor sorted = tensor(named, i64).to(Device{});
  const Tensor mixed = take(sorted, arange(count, i64, Device{}) * 7919 % count, 0);
  for (const DType dtype : {u8, i16, i32, u32, i64, u64, bf16, f32, f64}) {
    for (const int64_t columns : {0, 1, 2, 3, 33}) {
      // Many columns are slow: for three dtypes in each way, for the others in the first.
      const bool is_short = columns == 33 && dtype != f32 && dtype != i16 && dtype != i64;
      INFO(name_of(dtype) << " of " << columns << " columns");
      const Shape shape = columns == 0 ? Shape{count} : Shape{count, columns};
      const Tensor values = values_of(dtype, shape);
      for (const int64_t places : {256, 257}) {
        const std::vector<Tensor> ways = {mixed, sorted, Tensor(mixed - places)};
        for (const Tensor& at : ways) {
          if (is_short && (places == 256 || &at != &ways.front())) continue;
          check([&](const Tensor& i, const Tensor& v) { return scatter_add(v, i, places); }, at,
                values);
        }
      }
      if (columns == 2) continue;
      const Shape of_base = columns == 0 ? Shape{256} : Shape{256, columns};
      const Tensor base = values_of(dtype, of_base);
      const auto joined = [](const Tensor& x, const Tensor& i, const Tensor& v) {
        return x.at({i}).add(v);
      };
      check(joined, base, mixed, values);
      check([](const Tensor& x, const Tensor& i, const Tensor& v) { return x.at({i}).set(v); },
            base, mixed, values);
    }
  }
}

TEST_CASE("results that begin anywhere or do not lie in order are scattered into on a GPU",
          "[cuda]") {
  if (!has_gpu()) return;
  for (const DType dtype : {u8, i16, i32, f32, f64}) {
    for (const int64_t begin : {0, 1, 3}) {
      INFO(name_of(dtype) << " from " << begin);
      const Tensor all = values_of(dtype, {1201});
      const Tensor at = arange(300, i64, Device{}) * 7919 % 1100;
      const Tensor values = values_of(dtype, {300});
      check(
          [&](const Tensor& x, const Tensor& i, const Tensor& v) {
            return x.at({Range{begin, begin + 1100}}).at({i}).set(v);
          },
          all, at, values);
      check(
          [&](const Tensor& x, const Tensor& i, const Tensor& v) {
            return flip(x, 0).at({Range{begin, begin + 1100}}).at({i}).add(v);
          },
          all, at, values);
      const Tensor grid = values_of(dtype, {40, 30});
      check([&](const Tensor& x, const Tensor& i,
                const Tensor& v) { return swapaxes(x, 0, 1).at({i}).set(v); },
            grid, Tensor(at.at({Range{0, 50}}) % 30), values_of(dtype, {50, 40}));
    }
  }
}
