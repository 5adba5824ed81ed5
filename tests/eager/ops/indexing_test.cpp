#include "eager/ops/indexing.h"

#include "autograd/gradient.h"
#include "eager/ops/ops.h"
#include "nitinol.h"
#include "tests/ints.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

using namespace nitinol;
using nitinol::test::ints;
using nitinol::test::random_values;

using Ints = std::vector<int64_t>;

TEST_CASE("at reads integers, ranges, the ellipsis and new axes", "[eager][indexing]") {
  const Tensor x = reshape(arange(24), {2, 3, 4});
  CHECK(ints(x.at({1, 2, 3})) == Ints{23});
  CHECK(ints(x.at({1, 2})) == Ints{20, 21, 22, 23});
  CHECK(ints(x.at({ellipsis, -1})) == Ints{3, 7, 11, 15, 19, 23});
  CHECK(ints(x.at({0, ellipsis, Range{1, 3}})) == Ints{1, 2, 5, 6, 9, 10});
  CHECK(x.at({new_axis, 0, ellipsis, new_axis}).get().shape() == Shape{1, 3, 4, 1});
  CHECK(x.at({all_of_axis, 1}).get().shape() == Shape{2, 4});
  CHECK(ints(x[-1][0]) == Ints{12, 13, 14, 15});
}

TEST_CASE("indices may be a list of the program's", "[eager][indexing]") {
  const Tensor x = reshape(arange(24), {2, 3, 4});
  std::vector<Index> indices = {ellipsis};
  CHECK(ints(x.at(indices)) == ints(x));
  indices.push_back(Range{1, 3});
  CHECK(ints(x.at(indices).at({0, ellipsis})) == Ints{1, 2, 5, 6, 9, 10});
  indices.insert(indices.begin(), -1);
  CHECK(ints(x.at(indices).set(0).at({1, 2})) == Ints{20, 0, 0, 23});
  CHECK(ints(x.at(std::span<const Index>())) == ints(x));
  indices.assign(4, 0);
  CHECK_THROWS_WITH(x.at(indices), Catch::Contains("4 indices for int64[2, 3, 4]"));
}

TEST_CASE("a part lies where slice and reshape would put it", "[eager][indexing]") {
  const std::vector<std::vector<Index>> keys = {
      {1},
      {Range{1, 3}},
      {all_of_axis, 0},
      {ellipsis, Range{.step = 2}},
      {Range{.step = -1}, 1, new_axis},
      {new_axis, Range{2, 3}, all_of_axis, 2},
      {Range{1, 1}, 0},
      {Range{1, 1}},
      {0, 0, 0},
      {ellipsis},
      {all_of_axis, Range{0, 1}, all_of_axis, new_axis},
  };
  const Tensor x = reshape(arange(60), {3, 5, 4}).to(f32);
  for (const Tensor& base : {x, permute(x, {2, 0, 1}), slice(x, 1, Range{1, 4, 2}), x.to(f64)}) {
    std::vector<Tensor> watched;  // by operations, as a gradient may be asked for
    const auto look = grad([&](const Tensor& t) -> Tensor {
      for (const auto& key : keys) watched.push_back(t.at(std::span(key)));
      return sum(t);
    });
    static_cast<void>(look(base));
    for (std::size_t k = 0; k < keys.size(); ++k) {
      CAPTURE(k, describe(base));
      const Tensor part = base.at(std::span(keys[k]));
      CHECK(part.shape() == watched[k].shape());
      CHECK(part.internals().strides == watched[k].internals().strides);
      CHECK(part.internals().offset == watched[k].internals().offset);
      CHECK(part.internals().storage.get() == base.internals().storage.get());
      CHECK(same_bits(part, stop_gradient(watched[k])));
    }
  }
}

TEST_CASE("ranges follow Python", "[eager][indexing]") {
  const Tensor x = arange(6);
  CHECK(ints(slice(x, 0, {1, 4})) == Ints{1, 2, 3});
  CHECK(ints(slice(x, 0, {.step = -1})) == Ints{5, 4, 3, 2, 1, 0});
  CHECK(ints(slice(x, 0, {-2})) == Ints{4, 5});
  CHECK(ints(slice(x, 0, {.stop = -4})) == Ints{0, 1});
  CHECK(ints(slice(x, 0, {4, 1, -2})) == Ints{4, 2});
  CHECK(ints(slice(x, 0, {2, 100, 3})) == Ints{2, 5});
  CHECK(ints(slice(x, 0, {4, 2})).empty());
  CHECK(ints(slice(x, 0, {10})).empty());
  CHECK(ints(slice(x, 0, {-100, 2})) == Ints{0, 1});
  CHECK(ints(slice(x, 0, {0, 6, INT64_MAX})) == Ints{0});
  CHECK(ints(slice(x, 0, {5, Range::open, INT64_MIN})) == Ints{5});
}

TEST_CASE("set makes a new value", "[eager][indexing]") {
  const Tensor x = reshape(arange(6), {2, 3});
  CHECK(ints(x.at({0}).set(9)) == Ints{9, 9, 9, 3, 4, 5});
  CHECK(ints(x.at({ellipsis, 1}).set(tensor({7, 8}))) == Ints{0, 7, 2, 3, 8, 5});
  CHECK(ints(x.at({Range{.step = -1}, Range{0, 2}}).set(tensor({{1, 2}, {3, 4}}))) ==
        Ints{3, 4, 2, 1, 2, 5});
  CHECK(ints(x.at({}).set(0)) == Ints(6));
  CHECK(ints(x.at({Range{2, 2}}).set(1)) == ints(x));
  CHECK(x.at({0, 0}).set(2.9).dtype() == i64);
  CHECK(ints(x) == Ints{0, 1, 2, 3, 4, 5});
}

TEST_CASE("split cuts into parts", "[eager][indexing]") {
  const std::vector<Tensor> parts = split(arange(5), 2);
  REQUIRE(parts.size() == 3);
  CHECK(ints(parts[2]) == Ints{4});
}

TEST_CASE("reshape keeps strides where they can express it", "[eager][view]") {
  const Tensor x = permute(reshape(arange(24), {2, 3, 4}), {1, 0, 2});
  const auto shares = [&](const Tensor& y) {
    return y.internals().storage.get() == x.internals().storage.get();
  };
  CHECK(shares(reshape(x, {3, 2, 2, 2})));
  CHECK(shares(reshape(x, {3, 1, 2, 4, 1})));
  CHECK_FALSE(shares(reshape(x, {6, 4})));
  CHECK(ints(reshape(x, {6, 4})) == ints(x));
  CHECK(shares(reshape(expand(x, {5, 3, 2, 4}), {5, 3, 2, 2, 2})));
  CHECK(ints(reshape(expand(tensor({1, 2}, i64), {2, 2}), {4})) == Ints{1, 2, 1, 2});
  CHECK(reshape(x, {-1}).shape() == Shape{24});
  CHECK(reshape(zeros({0, 3}), {-1, 3}).shape() == Shape{0, 3});
  CHECK(reshape(flip(arange(4)), {2, 2}).to_vector<int64_t>() == Ints{3, 2, 1, 0});
}

TEST_CASE("axes count from the end too", "[eager][view]") {
  const Tensor x = zeros({2, 3, 1});
  CHECK(transpose(x).shape() == Shape{2, 1, 3});
  CHECK(transpose(x, 0, -1).shape() == Shape{1, 3, 2});
  CHECK(permute(x, {-1, 0, 1}).shape() == Shape{1, 2, 3});
  CHECK(squeeze(x, -1).shape() == Shape{2, 3});
  CHECK(squeeze(x).shape() == Shape{2, 3});
  CHECK(unsqueeze(x, -1).shape() == Shape{2, 3, 1, 1});
  CHECK(unsqueeze(x, 0).shape() == Shape{1, 2, 3, 1});
  CHECK(expand(x, {-1, -1, 4}).shape() == Shape{2, 3, 4});
  CHECK(stack({x, x}, -1).shape() == Shape{2, 3, 1, 2});
  CHECK(concat({x, x}, -2).shape() == Shape{2, 6, 1});
  CHECK(take(x, tensor({0, 1, 2}), -2).shape() == Shape{2, 3, 1});
  CHECK(flip(arange(3), -1).to_vector<int64_t>() == Ints{2, 1, 0});
}

TEST_CASE("joins promote, pads take the tensor's dtype", "[eager][join]") {
  CHECK(concat({ones({1}, i8), ones({1}, f16)}).dtype() == f16);
  CHECK(stack({ones({2}, i32), ones({2})}).shape() == Shape{2, 2});
  const Tensor x = pad(tensor({1, 2}), {{1, 2}}, 7.9);
  CHECK(x.to_vector<int>() == std::vector<int>{7, 1, 2, 7, 7});
  CHECK(one_hot(tensor({1, 5, -1}), 2, u8).to_vector<uint8_t>() ==
        std::vector<uint8_t>{0, 1, 0, 0, 0, 0});
}

TEST_CASE("take replaces the axis by the axes of the indices", "[eager][indexing]") {
  const Tensor x = reshape(arange(6), {2, 3});
  CHECK(ints(take(x, tensor({1, -2}))) == Ints{3, 4, 5, 0, 1, 2});
  CHECK(ints(take(x, tensor({2, 0}), 1)) == Ints{2, 0, 5, 3});
  CHECK(take(x, tensor({{0, 1, 1}}), 1).shape() == Shape{2, 1, 3});
  CHECK(ints(take(x, tensor(1, u8))) == Ints{3, 4, 5});
  CHECK_THROWS_WITH(take(x, tensor({0, 9}), 1),
                    Catch::Contains("take_along: index 9 for an axis of 3"));
}

TEST_CASE("take along each axis of three, and its gradient", "[eager][indexing]") {
  constexpr int64_t size = 1500, count = 1300;  // more than are looked up at a time
  std::vector<int64_t> places;
  for (int64_t i = 0; i < count; ++i) places.push_back(i * 7 % size - (i % 2 == 0 ? 0 : size));
  const Tensor indices = from_span<int64_t>(places, {count});
  for (const int64_t axis : {0, 1, 2}) {
    CAPTURE(axis);
    Shape from = {2, 3, 2}, to = from;
    from[static_cast<int>(axis)] = size;
    to[static_cast<int>(axis)] = count;
    const int64_t inner = axis == 2 ? 1 : axis == 1 ? 2 : 6;
    const Tensor x = reshape(cast(arange(element_count(from)), f32), from);
    const Tensor weight = reshape(cast(arange(element_count(to)), f32), to);
    const Tensor taken = take(x, indices, axis);
    CHECK(is_contiguous(taken.shape(), taken.internals().strides));
    std::vector<float> expected, sums(static_cast<std::size_t>(x.size()));
    for (int64_t k = 0; k < element_count(to); ++k) {
      const int64_t outer = k / inner / count,
                    row = (places[static_cast<std::size_t>(k / inner % count)] + size) % size;
      const int64_t at = (outer * size + row) * inner + k % inner;
      expected.push_back(static_cast<float>(at));
      sums[static_cast<std::size_t>(at)] += static_cast<float>(k);
    }
    CHECK(taken.to_vector<float>() == expected);
    const auto slope = grad([&](const Tensor& t) { return sum(take(t, indices, axis) * weight); });
    CHECK(slope(x).to_vector<float>() == sums);
  }
}

TEST_CASE("gather takes an element for each index along the axis", "[eager][indexing]") {
  const Tensor x = reshape(arange(6), {2, 3});
  CHECK(ints(gather(x, 1, tensor({{2, 0}, {-1, 1}}))) == Ints{2, 0, 5, 4});
  CHECK(ints(gather(x, 0, tensor({{1, 0, -1}}))) == Ints{3, 1, 5});
  CHECK(ints(gather(transpose(x), -2, tensor({{0, -2}}, i8))) == Ints{0, 4});
  CHECK(ints(gather(flip(x), 1, tensor({{0}, {1}}))) == Ints{5, 1});
  CHECK(gather(x, 1, zeros({2, 0}, i64)).shape() == Shape{2, 0});
  CHECK(gather(zeros({2, 0}), 1, zeros({2, 0}, i64)).shape() == Shape{2, 0});
  const Tensor y = tensor({{3, 9, 4}, {8, 1, 2}}, i64);
  CHECK(ints(gather(y, 1, argmax(y, 1, keepdims))) == ints(max(y, 1)));
}

TEST_CASE("gather repeats sizes of 1 off the axis", "[eager][indexing]") {
  const Tensor x = reshape(arange(6), {2, 3});
  CHECK(ints(gather(x, 1, tensor({{2, 0}}))) == Ints{2, 0, 5, 3});
  CHECK(ints(gather(tensor({{7, 8, 9}}, i64), 1, tensor({{0}, {2}}))) == Ints{7, 9});
  CHECK(ints(gather(tensor({{7, 8, 9}}, i64), 0, tensor({{0}, {0}}))) == Ints{7, 8, 9, 7, 8, 9});
}

TEST_CASE("scatter_add_along is the opposite of gather", "[eager][indexing]") {
  const Tensor values = tensor({{1, 2, 4}, {8, 16, 32}}, i64);
  const Tensor indices = tensor({{0, 3, 0}, {-1, 1, -4}});
  CHECK(ints(scatter_add_along(values, 1, indices, 4)) == Ints{5, 0, 0, 2, 32, 16, 0, 8});
  CHECK(ints(scatter_add_along(values, 0, tensor({{0, 1, 1}, {0, 0, 1}}), 2)) ==
        Ints{9, 16, 0, 0, 2, 36});
  CHECK(ints(scatter_add_along(ones({1, 1}, i64), 1, indices, 4)) == Ints{2, 0, 0, 1, 1, 1, 0, 1});
  CHECK(ints(scatter_add_along(zeros({2, 0}, i64), 1, zeros({2, 0}, i64), 2)) == Ints(4));
  CHECK(scatter_add_along(zeros({2, 0}), 1, zeros({2, 0}, i64), 0).shape() == Shape{2, 0});
}

TEST_CASE("scatter_add_along sums 16-bit numbers in float32", "[eager][indexing]") {
  const Tensor indices = zeros({2, 4096}, i64);
  for (const DType dtype : {f16, bf16}) {
    const Tensor sums = scatter_add_along(ones({2, 4096}, dtype), 1, indices, 1);
    CHECK(sums.to(f32).to_vector<float>() == std::vector<float>{4096, 4096});
  }
}

TEST_CASE("scatter_add names the index that is out of range", "[eager][indexing]") {
  for (const Shape& row : {Shape{}, Shape{3}, Shape{40}}) {  // one line, narrow and wide rows
    Shape shape = row;
    shape.insert(0, 4);
    CHECK_THROWS_WITH(scatter_add(ones(shape), tensor({0, 1, 7, 9}), 5),
                      Catch::Contains("-5 <= index < 5, got 7"));
  }
}

TEST_CASE("scatter_add gives narrow rows the bits that they have in wide ones",
          "[eager][indexing]") {
  manual_seed(1);
  const DType dtype = GENERATE(f32, f64, f16, bf16, i8, i64);
  const Tensor wide = (randn({3, 500, 40}) * 40).to(dtype);
  const Tensor bins = reshape((arange(1500) * 31) % 7 - 3, {3, 500});
  const Tensor sums = scatter_add(wide, bins, 4);
  for (const int64_t width : {1, 3, 16, 17}) {
    CAPTURE(name_of(dtype), width);
    const Tensor narrow = slice(wide, 2, Range{2, 2 + width});
    CHECK(same_bits(scatter_add(narrow, bins, 4), slice(sums, 1, Range{2, 2 + width})));
  }
  const Tensor column = squeeze(slice(wide, 2, Range{5, 6}), 2);
  CHECK(same_bits(scatter_add(column, bins, 4), squeeze(slice(sums, 1, Range{5, 6}), 1)));
}

TEST_CASE("scatter_add_along of more rows than are summed at once", "[eager][indexing]") {
  const int64_t rows = 40000;
  const Tensor indices = remainder(reshape(arange(60000), {30000, 2}) * 48271, rows);
  const Tensor values = randint(-9, 9, {30000, 2});
  const Tensor sums = scatter_add_along(values, 0, indices, rows);
  for (const int64_t c : {0, 1}) {
    CHECK(ints(transpose(sums)[c]) ==
          ints(scatter_add(transpose(values)[c], transpose(indices)[c], rows)));
  }
}

TEST_CASE("tensors choose as in NumPy", "[eager][indexing]") {
  const Tensor x = reshape(arange(24), {2, 3, 4});
  const Tensor i = tensor({1, 0}), j = tensor({{2}, {0}});
  CHECK(ints(x.at({i, j}).get()) ==
        ints(stack({stack({x[1][2], x[0][2]}), stack({x[1][0], x[0][0]})})));
  CHECK(x.at({i, j}).shape() == Shape{2, 2, 4});
  CHECK(x.at({all_of_axis, i, j}).shape() == Shape{2, 2, 2});
  CHECK(x.at({i, all_of_axis, j}).shape() == Shape{2, 2, 3});  // separated: first
  CHECK(x.at({0, all_of_axis, i}).shape() == Shape{2, 3});     // so is an integer
  CHECK(ints(x.at({0, all_of_axis, i}).get()) == Ints{1, 5, 9, 0, 4, 8});
  CHECK(x.at({all_of_axis, 1, i}).shape() == Shape{2, 2});
  CHECK(x.at({ellipsis, tensor({{0, 3}})}).shape() == Shape{2, 3, 1, 2});
  CHECK(x.at({new_axis, i, Range{1, 3}}).shape() == Shape{1, 2, 2, 4});
  CHECK(ints(x.at({tensor({-1}), tensor({-1}), tensor({-1})}).get()) == Ints{23});
  CHECK_THROWS_WITH(x.at({i, tensor({3, 0})}).get(), Catch::Contains("index 3 for an axis of 3"));
  CHECK_THROWS_WITH(x.at({tensor({0.5})}), Catch::Contains("integers"));
  const Tensor last = full({2}, ~uint64_t{0});  // which is -1 to int64
  CHECK_THROWS_WITH(x.at({last}).get(), Catch::Contains("int64 does not hold the number"));
  CHECK_THROWS_WITH(take(x, last), Catch::Contains("int64 does not hold the number"));
  CHECK_THROWS_AS(x.at({i, tensor({0, 1, 2})}).get(), Error);
}

TEST_CASE("masks choose among the axes that they stand for", "[eager][indexing]") {
  const Tensor x = reshape(arange(24), {2, 3, 4});
  const Tensor of_rows = tensor({true, false, true}),
               of_two = x.at({all_of_axis, all_of_axis, 0}) > 3;
  CHECK(x.at({all_of_axis, of_rows}).shape() == Shape{2, 2, 4});
  CHECK(ints(x.at({1, of_rows, 0}).get()) == Ints{12, 20});
  CHECK(x.at({of_two}).shape() == Shape{5, 4});
  CHECK(ints(x.at({of_two, 1}).get()) == Ints{5, 9, 13, 17, 21});
  CHECK(x.at({of_two, tensor({0, 1, 2, 3, 0})}).shape() == Shape{5});
  CHECK(x.at({tensor({false, false})}).shape() == Shape{0, 3, 4});
  CHECK_THROWS_WITH(x.at({of_rows}), Catch::Contains("a mask of [3] from axis 0"));
  const Tensor yes = tensor(true), no = tensor(false);
  CHECK(x.at({yes, tensor({1}), no}).shape() == Shape{0, 3, 4});
  CHECK(ints(x.at({yes, tensor({1}), 0}).get()) == Ints{12, 13, 14, 15});
  CHECK(x.at({all_of_axis, yes, 0}).shape() == Shape{2, 1, 4});
}

TEST_CASE("what tensors choose is replaced, and joined", "[eager][indexing]") {
  const Tensor x = zeros({2, 3, 2}, i64);
  const Tensor i = tensor({1, 1, 0}), j = tensor({2, 2, 0});
  CHECK(ints(x.at({i, j}).set(tensor({{1, 2}, {3, 4}, {5, 6}}))) ==
        Ints{5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 3, 4});
  CHECK(ints(x.at({i, j}).add(1)) == Ints{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 2});
  CHECK(ints((x + 1).at({i, j, 0}).multiply(3)) == Ints{3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 9, 1});
  CHECK(ints(x.at({i, all_of_axis, 1}).maximum(tensor({1, 2, 3}))) ==
        Ints{0, 1, 0, 2, 0, 3, 0, 1, 0, 2, 0, 3});
  CHECK(ints(x.at({0, Range{1}}).add(7)) == Ints{0, 0, 7, 7, 7, 7, 0, 0, 0, 0, 0, 0});
  const Tensor mask = tensor({true, false, true});
  CHECK(ints(x.at({1, mask}).set(tensor({{1, 2}, {3, 4}}))) ==
        Ints{0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4});
  CHECK(ints(x.at({all_of_axis, mask, 1}).set(tensor({{1, 2}, {3, 4}}))) ==
        Ints{0, 1, 0, 0, 0, 2, 0, 3, 0, 0, 0, 4});
  CHECK(ints(x.at({0, all_of_axis, tensor({false, true})}).set(tensor({{1, 2, 3}}))) ==
        Ints{0, 1, 0, 2, 0, 3, 0, 0, 0, 0, 0, 0});
  CHECK(ints(x.at({all_of_axis, mask}).add(5)) == Ints{5, 5, 0, 0, 5, 5, 5, 5, 0, 0, 5, 5});
  CHECK_THROWS_WITH(x.at({1, mask}).set(tensor({{1, 2}, {3, 4}, {5, 6}})),
                    Catch::Contains("more or fewer"));
  CHECK_THROWS_AS(x.at({i}).set(zeros({2, 3, 2})), Error);
  const Tensor yes = tensor(true), no = tensor(false);
  CHECK(ints(x.at({1, yes, Range{1}}).add(1)) == Ints{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1});
  CHECK(ints(x.at({yes, i, 0, 1}).set(4)) == Ints{0, 4, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0});
  CHECK(ints(x.at({no, tensor({1})}).set(4)) == Ints(12, 0));
}

TEST_CASE("what is joined with a reversed tensor comes back in the tensor's order",
          "[eager][indexing]") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  const Range reversed = {.step = -1};
  CHECK(ints(x.at({reversed}).add(tensor({10, 20, 30}))) == Ints{11, 22, 33, 14, 25, 36});
  CHECK(ints(x.at({all_of_axis, reversed}).multiply(tensor({1, 2, 3}))) ==
        Ints{3, 4, 3, 12, 10, 6});
  CHECK(ints(x.at({tensor({0}), reversed}).set(tensor({7, 8, 9}))) == Ints{9, 8, 7, 4, 5, 6});
  CHECK(ints(x.at({tensor({true, false}), reversed}).set(tensor({{7, 8, 9}}))) ==
        Ints{9, 8, 7, 4, 5, 6});
  CHECK(ints(x.at({reversed, tensor({0, 0})}).add(1)) == Ints{3, 2, 3, 6, 5, 6});
}

TEST_CASE("indexing by tensors is compiled and differentiated", "[jit][indexing]") {
  const Tensor i = tensor({2, 0, 2});
  const auto f = [&](const Tensor& x) {
    return sum(square(x.at({i, all_of_axis, tensor({0, 1, 1})}).get())) +
           sum(x.at({i}).set(2.0) * x) + sum(x.at({x > 1}).set(0.0));
  };
  const auto g = [&](const Tensor& x) { return grad(f)(x); };
  const auto compiled = compile(g);
  const Tensor x = random_values(f64, {3, 2, 2}, 3);
  for (int k = 0; k < 3; ++k) CHECK(same_bits(compiled(x), g(x)));
  CHECK(compiled.explain().plan_calls >= 1);
}

TEST_CASE("parts made at once are those of the long way, strides included", "[eager][indexing]") {
  const Tensor x = reshape(arange(120), {2, 3, 1, 4, 5});
  const std::vector<Tensor> bases = {x, permute(x, {3, 0, 4, 2, 1}), expand(x, {2, 3, 7, 4, 5}),
                                     flip(x, 3), slice(x, 4, {.step = 2})};
  const std::vector<Index> entries = {
      0,           -1,          all_of_axis, Range{.start = 1}, Range{.step = -1},
      Range{1, 1}, Range{0, 1}, ellipsis,    new_axis};
  const auto check = [](const Tensor& base, const std::vector<Index>& indices) {
    const auto attempt = [&](const auto& f) -> std::pair<Tensor, std::string> {
      try {
        return {f(), ""};
      } catch (const Error& error) {
        return {Tensor(), error.message()};
      }
    };
    const auto [made, error] = attempt([&] { return At::part_of(base, indices); });
    const auto [expected, why] = attempt([&] { return At(base, indices).get(); });
    REQUIRE(error == why);
    if (!why.empty()) return;
    REQUIRE(made.shape() == expected.shape());
    REQUIRE(made.strides() == expected.strides());
    REQUIRE(same_bits(made, expected));
    REQUIRE(made.internals().offset == expected.internals().offset);
  };
  for (const Tensor& base : bases) {
    check(base, {});
    for (const Index& a : entries) {
      check(base, {a});
      for (const Index& b : entries) {
        check(base, {a, b});
        for (const Index& c : entries) {
          check(base, {a, b, c});
          check(base, {a, ellipsis, b, c, 0});
        }
      }
    }
  }
  check(tensor(3), {new_axis});
  check(tensor(3), {ellipsis});
  check(tensor(3), {0});
}
