// Elements at other places: values against ones written out, compiled, differentiated, refused.
// bindings/python/tests/test_functions.py compares more with NumPy and PyTorch.
#include "eager/ops/rearrange.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

Tensor numbered(const Shape& shape) {
  return reshape(cast(arange(element_count(shape)), f64), shape);
}

struct Rearranging {
  std::string name;
  std::function<Tensor(const Tensor&)> apply;
};

/// Of tensors [3, 4].
const std::vector<Rearranging> rearrangings = {
    {"moveaxis", [](const Tensor& x) { return moveaxis(x, 0, 1); }},
    {"roll",
     [](const Tensor& x) {
       return roll(x, {1, -2}, {0, 1});
     }},
    {"roll as a line", [](const Tensor& x) { return roll(x, {5}); }},
    {"repeat", [](const Tensor& x) { return repeat(x, 3, 1); }},
    {"tile",
     [](const Tensor& x) {
       return tile(x, {2, 1, 3});
     }},
    {"unstack", [](const Tensor& x) { return unstack(x, 1)[2] * unstack(x, 1)[0]; }},
    {"tril", [](const Tensor& x) { return tril(x, 1); }},
    {"triu", [](const Tensor& x) { return triu(x, 1); }},
    {"diagonal", [](const Tensor& x) { return diagonal(x, 1); }},
    {"trace", [](const Tensor& x) { return trace(x, -1); }},
    {"diff", [](const Tensor& x) { return diff(x, 2, 1); }},
    {"diag", [](const Tensor& x) { return diag(x.at({1}), -2) * diag(x, 1).at({0}).get(); }},
    {"flatten", [](const Tensor& x) { return flatten(unsqueeze(x, 0), 0, 1); }},
    {"atleast_3d",
     [](const Tensor& x) {
       return atleast_3d(x) * atleast_2d(x.at({0, 0}));
     }},
    {"split",
     [](const Tensor& x) {
       return split(x, {1, 0, 3}, 1)[2];
     }},
    {"pad by reflection",
     [](const Tensor& x) {
       return pad(x, {{1, 7}, {2, 0}}, PadMode::reflect);
     }},
    {"pad by replication",
     [](const Tensor& x) {
       return pad(x, {{1, 2}, {0, 3}}, PadMode::replicate);
     }},
    {"pad around",
     [](const Tensor& x) {
       return pad(x, {{0, 0}, {9, 1}}, PadMode::circular);
     }},
};

}  // namespace

TEST_CASE("rearranged elements lie where they should", "[eager][rearrange]") {
  const Tensor x = numbered({2, 3});
  CHECK(same_bits(roll(x, {1}, 1), tensor({{2.0, 0.0, 1.0}, {5.0, 3.0, 4.0}})));
  CHECK(same_bits(roll(x, {-1}), tensor({{1.0, 2.0, 3.0}, {4.0, 5.0, 0.0}})));
  CHECK(same_bits(roll(x, {3}, 1), x));
  const int64_t far = int64_t{1} << 62;  // 3 * far is a multiple of 6, and beyond int64
  CHECK(same_bits(roll(x, {far, far, far}), x));
  CHECK(same_bits(repeat(x, 2, 0),
                  tensor({{0.0, 1.0, 2.0}, {0.0, 1.0, 2.0}, {3.0, 4.0, 5.0}, {3.0, 4.0, 5.0}})));
  CHECK(same_bits(repeat(tensor({7.0, 8.0, 9.0}), tensor({2, 0, 1})), tensor({7.0, 7.0, 9.0})));
  CHECK(same_bits(tile(tensor({1.0, 2.0}), {2}), tensor({1.0, 2.0, 1.0, 2.0})));
  CHECK(tile(x, {2, 1, 2}).shape() == Shape{2, 2, 6});
  const Tensor many =
      numbered({2, 1, 3, 1, 1, 2});  // with an axis for each repetition one too many
  const Tensor tiled = tile(many, {2, 3, 1, 2, 1, 1});
  CHECK(tiled.shape() == Shape{4, 3, 3, 2, 1, 2});
  CHECK(same_bits(tiled.at({Range{2, 4}, 2, all_of_axis, 1}).get(),
                  many.at({all_of_axis, 0, all_of_axis, 0}).get()));
  CHECK(same_bits(tril(x), tensor({{0.0, 0.0, 0.0}, {3.0, 4.0, 0.0}})));
  CHECK(same_bits(triu(x, 1), tensor({{0.0, 1.0, 2.0}, {0.0, 0.0, 5.0}})));
  CHECK(same_bits(diagonal(x, -1), tensor({3.0})));
  CHECK(diagonal(x, 3).shape() == Shape{0});
  CHECK(trace(tensor({{1, 2}, {3, 4}})).item<int64_t>() == 5);
  CHECK(same_bits(diff(tensor({1.0, 4.0, 9.0, 16.0}), 2), tensor({2.0, 2.0})));
  CHECK(moveaxis(numbered({2, 3, 4}), {0, 1}, {2, 0}).shape() == Shape{3, 4, 2});
  for (const int64_t k : {int64_t{5}, INT64_MAX}) {  // beyond the corners
    CHECK(same_bits(tril(x, k), x));
    CHECK(same_bits(triu(x, k), zeros_like(x)));
    CHECK(same_bits(tril(x, -k - 1), zeros_like(x)));
    CHECK(same_bits(triu(x, -k - 1), x));
    CHECK(diagonal(x, k).shape() == Shape{0});
    CHECK(diagonal(x, -k - 1).shape() == Shape{0});
  }
  // Infinities and NaN beyond the diagonal are gone, not multiplied.
  CHECK(same_bits(tril(full({2, 2}, INFINITY)), tensor({{INFINITY, 0.0F}, {INFINITY, INFINITY}})));
}

TEST_CASE("every dtype is rearranged", "[eager][rearrange]") {
  for (const DType dtype : {boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64}) {
    const Tensor x = cast(numbered({3, 4}) > 4.0, dtype);
    CHECK(tril(x).dtype() == dtype);
    CHECK(roll(x, {1}, 0).dtype() == dtype);
    CHECK(same_bits(triu(x, -5), x));
    CHECK(same_bits(diagonal(tile(x, {1, 2}), 4), diagonal(x)));
  }
}

TEST_CASE("compiled functions rearrange in kernels, with eager's bits", "[eager][rearrange][jit]") {
  for (const Rearranging& one : rearrangings) {
    INFO(one.name);
    const auto f = [&one](const Tensor& x) { return sin(one.apply(cos(x))); };
    const auto compiled = compile(f, {.check = Check::never});
    const Tensor x = randn({3, 4});
    settle(compiled, x);
    CHECK(same_bits(compiled(x), f(x)));
    CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
    CHECK_NOTHROW(check_gradients([&](const Tensor& v) { return sum(square(f(v))); },
                                  numbered({3, 4}) * 0.1));
  }
}

TEST_CASE("numbers of repetitions are looked at", "[eager][rearrange][jit]") {
  const auto f = compile([](const Tensor& x, const Tensor& counts) { return repeat(x, counts); });
  for (int i = 0; i < 3; ++i) CHECK(f(ones({2}), tensor({i, 2})).shape() == Shape{i + 2});
  CHECK(f.explain().signatures.at(0).tier == without_plan());
  CHECK_THAT(f.explain().signatures.at(0).reason, Catch::Contains("looks at"));
}

TEST_CASE("what moves axes or takes parts copies nothing", "[eager][rearrange]") {
  const Tensor x = randn({4, 5, 6});
  const auto storage = [](const Tensor& t) { return t.internals().storage.get(); };
  CHECK(storage(moveaxis(x, 0, 2)) == storage(x));
  CHECK(storage(unstack(x)[0]) == storage(x));
  CHECK(storage(diagonal(x)) == storage(x));
}

TEST_CASE("misuse of rearranging functions is an Error that says what to do",
          "[eager][rearrange]") {
  const Tensor x = ones({3, 4});
  CHECK_THROWS_WITH(moveaxis(x, {0, 1}, 0), Catch::Contains("moveaxis: axes [0, 1] to [0]") &&
                                                Catch::Contains("as many places as axes"));
  CHECK_THROWS_AS(moveaxis(x, {0, 0}, {0, 1}), Error);
  CHECK_THROWS_WITH(roll(x, {1, 2, 3}, {0, 1}), Catch::Contains("one shift, or one for each axis"));
  CHECK_THROWS_WITH(repeat(x, -1), Catch::Contains("repeat: the number of repetitions"));
  CHECK_THROWS_WITH(repeat(x, tensor({1, -2, 1}), 0), Catch::Contains("at least 0, got -2"));
  CHECK_THROWS_WITH(repeat(x, tensor({1, 2}), 0), Catch::Contains("3 numbers, or one"));
  CHECK_THROWS_WITH(repeat(x, tensor({1.5, 2.0, 1.0}), 0), Catch::Contains("integers"));
  const Tensor many = tensor({INT64_MAX, INT64_MAX, int64_t{2}});
  CHECK_THROWS_WITH(repeat(x, many, 0), Catch::Contains("a result that fits in memory"));
  CHECK_THROWS_WITH(tile(x, {2, -1}), Catch::Contains("tile"));
  CHECK_THROWS_WITH(tril(ones({3})), Catch::Contains("tril: float32[3]: expected matrices"));
  CHECK_THROWS_WITH(diagonal(ones({3})), Catch::Contains("at least two axes"));
  CHECK_THROWS_WITH(diff(x, -1, 0), Catch::Contains("how often differences are taken"));
  CHECK_THROWS_AS(diff(ones({3}, boolean)), Error);
  CHECK_THROWS_AS(roll(x, {1}, 2), Error);
}

TEST_CASE("grids, windows, parts and turns", "[eager][rearrange]") {
  const Tensor x = reshape(arange(6), {2, 3});
  CHECK(rot90(x).to_vector<int64_t>() == std::vector<int64_t>{2, 5, 1, 4, 0, 3});
  CHECK(rot90(x, -5).to_vector<int64_t>() == std::vector<int64_t>{3, 0, 4, 1, 5, 2});
  CHECK(sliding_window(x, 1, 2).shape() == Shape{2, 2, 2});
  CHECK(chunk(arange(7), 3).size() == 3);
  CHECK(chunk(arange(2), 5).size() == 2);
  CHECK(chunk(zeros({2, 0}), 3, 1).size() == 3);  // none is missing where all are empty
  CHECK(glu(zeros({2, 0})).shape() == Shape{2, 0});
  CHECK(meshgrid({arange(2), arange(3)})[0].shape() == Shape{3, 2});
  CHECK(meshgrid({arange(2), arange(3)}, false)[1].shape() == Shape{2, 3});
  CHECK_THROWS_WITH(chunk(x, 0),
                    Catch::Contains("the number of parts: expected at least 1, got 0"));
  CHECK_THROWS_WITH(sliding_window(x, 1, 0), Catch::Contains("the size: expected at least 1"));
  CHECK_THROWS_WITH(sliding_window(x, 1, 4), Catch::Contains("expected at most 3"));
}

TEST_CASE("padding repeats elements, however long", "[eager][rearrange]") {
  const Tensor x = arange(3);
  const auto padded = [&x](Padding padding, PadMode mode) {
    return pad(x, {padding}, mode).to_vector<int64_t>();
  };
  using Ints = std::vector<int64_t>;
  CHECK(padded({3, 4}, PadMode::reflect) == Ints{1, 2, 1, 0, 1, 2, 1, 0, 1, 2});
  CHECK(padded({2, 1}, PadMode::replicate) == Ints{0, 0, 0, 1, 2, 2});
  CHECK(padded({4, 2}, PadMode::circular) == Ints{2, 0, 1, 2, 0, 1, 2, 0, 1});
  CHECK(padded({2, 1}, PadMode::reflect) == Ints{2, 1, 0, 1, 2, 1});
  CHECK(padded({0, 2}, PadMode::reflect) == Ints{0, 1, 2, 1, 0});
  CHECK(padded({3, 3}, PadMode::circular) == Ints{0, 1, 2, 0, 1, 2, 0, 1, 2});
  CHECK(padded({1, 0}, PadMode::circular) == Ints{2, 0, 1, 2});
  CHECK(padded({0, 9}, PadMode::replicate) == Ints{0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2});
  CHECK(pad(ones({1}), {{2, 1}}, PadMode::reflect).shape() == Shape{4});
  CHECK(pad(zeros({0, 2}), {{0, 0}, {1, 1}}, PadMode::circular).shape() == Shape{0, 4});
  CHECK(same_bits(pad(tensor(2.0F), {}, PadMode::reflect), tensor(2.0F)));
  for (const DType dtype : {boolean, u8, i64, f16, f64})
    CHECK(pad(ones({2}, dtype), {{1, 1}}, PadMode::reflect).dtype() == dtype);
  CHECK_THROWS_WITH(pad(x, {{1, 1}, {0, 0}}, PadMode::reflect), Catch::Contains("one per axis"));
  CHECK_THROWS_WITH(pad(x, {{-1, 1}}, PadMode::circular), Catch::Contains("at least 0"));
  CHECK_THROWS_WITH(pad(zeros({0}), {{0, 1}}, PadMode::replicate),
                    Catch::Contains("elements to repeat"));
}

TEST_CASE("diagonals become matrices, and axes are joined and added", "[eager][rearrange]") {
  const Tensor x = tensor({1, 2});
  CHECK(same_bits(diag(x), tensor({{1, 0}, {0, 2}})));
  CHECK(same_bits(diag(x, 1), tensor({{0, 1, 0}, {0, 0, 2}, {0, 0, 0}})));
  CHECK(same_bits(diag(x, -1), tensor({{0, 0, 0}, {1, 0, 0}, {0, 2, 0}})));
  CHECK(same_bits(diag(diag(x, -3), -3), x));
  CHECK(same_bits(diag(zeros({0}), -2), zeros({2, 2})));
  CHECK(diag(zeros({0})).shape() == Shape{0, 0});
  CHECK(diag(ones({2}, boolean)).dtype() == boolean);
  CHECK_THROWS_WITH(diag(ones({1, 2, 3})), Catch::Contains("one axis or two"));
  CHECK_THROWS_AS(diag(x, INT64_MIN), Error);

  const Tensor image = zeros({2, 3, 4, 5});
  CHECK(flatten(image, 1, 2).shape() == Shape{2, 12, 5});
  CHECK(flatten(image, -2).shape() == Shape{2, 3, 20});
  CHECK(flatten(image, 2, 2).shape() == image.shape());
  CHECK(flatten(zeros({0, 3}), 0, -1).shape() == Shape{0});
  CHECK(flatten(tensor(1)).shape() == Shape{1});
  CHECK_THROWS_WITH(flatten(image, 2, 1), Catch::Contains("1 before 2"));
  CHECK_THROWS_AS(flatten(image, 0, 4), Error);
  CHECK(atleast_1d(tensor(1)).shape() == Shape{1});
  CHECK(atleast_2d(tensor(1)).shape() == Shape{1, 1});
  CHECK(atleast_3d(x).shape() == Shape{1, 2, 1});
  CHECK(atleast_3d(ones({2, 3})).shape() == Shape{2, 3, 1});
  CHECK(atleast_2d(image).shape() == image.shape());
}

TEST_CASE("parts have the lengths that are given", "[eager][rearrange]") {
  const Tensor x = numbered({2, 5});
  const std::vector<Tensor> parts = split(x, {2, 0, 3}, -1);
  CHECK(parts.size() == 3);
  CHECK(same_bits(concat(parts, 1), x));
  CHECK(parts[1].shape() == Shape{2, 0});
  CHECK(split(zeros({0}), Dims{}).empty());
  CHECK(same_bits(unbind(x, 1)[4], unstack(x, 1)[4]));
  for (const Dims& wrong : {Dims{2, 2}, Dims{6, -1}, Dims{INT64_MAX, 6}, Dims{}})
    CHECK_THROWS_WITH(split(x, wrong, 1), Catch::Contains("lengths whose sum is 5"));
  CHECK_THROWS_AS(split(x, Dims{2}, 2), Error);
}

TEST_CASE("shapes broadcast", "[eager][rearrange]") {
  CHECK(broadcast_shapes({Shape{3, 1}, Shape{4}, Shape{}}) == Shape{3, 4});
  CHECK(broadcast_shapes({Shape{0}, Shape{1}}) == Shape{0});
  CHECK(broadcast_shapes(std::vector<Shape>{}) == Shape{});
  CHECK_THROWS_WITH(broadcast_shapes({Shape{2}, Shape{3}}), Catch::Contains("broadcast_shapes"));
}

TEST_CASE("a tensor that is repeated along several axes is copied once", "[rearrange]") {
  const auto tiled = compile([](const Tensor& x) -> Tensor { return tile(x, {2, 1, 3}); });
  const Tensor x = numbered({2, 3, 4});
  for (int call = 0; call < 4; ++call) CHECK(same_bits(tiled(x), tile(x, {2, 1, 3})));
  const jit::PlanReport plan = tiled.explain().signatures.at(0).plan;
  REQUIRE(plan.steps.size() == 1);
  CHECK(plan.steps[0].bytes_written == plan.steps[0].bytes_read * 6);
}
