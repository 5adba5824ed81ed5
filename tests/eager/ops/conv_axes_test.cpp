// Convolutions along one axis and three, transposed ones, and padding on sides that differ: number
// by number, with gradients, and compiled.
#include "eager/ops/conv.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <array>
#include <functional>
#include <vector>

using namespace nitinol;

namespace {

Tensor some_numbers(const Shape& shape, uint64_t seed) {
  const Generator generator(seed);
  return randn(shape, f64, generator);
}

using Triple = std::array<int64_t, 3>;

/// How windows lie along three axes.
struct Ways {
  Triple stride, before, dilation;
  int64_t groups = 1;
};

/// For each product of a convolution of x [n, c, d, h, w] by `weight` that gives y [n, o, ...]:
/// use(index of x, of the weight, of y), of their elements.
void for_each_product(const Shape& x, const Shape& weight, const Shape& y, const Ways& ways,
                      const std::function<void(std::size_t, std::size_t, std::size_t)>& use) {
  const auto index = [](const Shape& shape, const std::array<int64_t, 5>& at) {
    int64_t i = 0;
    for (int axis = 0; axis < 5; ++axis) i = i * shape[axis] + at[static_cast<std::size_t>(axis)];
    return static_cast<std::size_t>(i);
  };
  const int64_t each = weight[0] / ways.groups;  // results of a group
  for (int64_t n = 0; n < y[0]; ++n)
    for (int64_t o = 0; o < y[1]; ++o)
      for (int64_t c = 0; c < weight[1]; ++c)
        for (int64_t k = 0; k < weight[2] * weight[3] * weight[4]; ++k)
          for (int64_t p = 0; p < y[2] * y[3] * y[4]; ++p) {
            const Triple tap = {k / (weight[3] * weight[4]), k / weight[4] % weight[3],
                                k % weight[4]};
            const Triple to = {p / (y[3] * y[4]), p / y[4] % y[3], p % y[4]};
            std::array<int64_t, 5> from = {n, o / each * weight[1] + c, 0, 0, 0};
            bool is_inside = true;
            for (std::size_t a = 0; a < 3; ++a) {
              from[2 + a] = to[a] * ways.stride[a] + tap[a] * ways.dilation[a] - ways.before[a];
              is_inside &= from[2 + a] >= 0 && from[2 + a] < x[static_cast<int>(2 + a)];
            }
            if (is_inside)
              use(index(x, from), index(weight, {o, c, tap[0], tap[1], tap[2]}),
                  index(y, {n, o, to[0], to[1], to[2]}));
          }
}

/// With axes of size 1 where there are fewer than five.
Shape in_five(const Shape& shape) {
  Shape all = shape;
  while (all.size() < 5) all.insert(2, 1);
  return all;
}

void check_close(const Tensor& got, const std::vector<double>& expected) {
  const auto numbers = got.to_vector<double>();
  REQUIRE(numbers.size() == expected.size());
  for (std::size_t i = 0; i < numbers.size(); ++i)
    CHECK(numbers[i] == Approx(expected[i]).margin(1e-12));
}

struct Pieces {
  Tensor x, weight;
};

/// f's values, its gradients by central differences, its Plan.
void check_convolution(const std::function<Tensor(const Pieces&)>& f, const Pieces& of,
                       const Ways& ways, bool is_transposed) {
  const Tensor y = f(of);
  const auto x = of.x.to_vector<double>();
  const auto weight = of.weight.to_vector<double>();
  std::vector<double> expected(static_cast<std::size_t>(y.size()));
  const Shape from = in_five(is_transposed ? y.shape() : of.x.shape());
  const Shape to = in_five(is_transposed ? of.x.shape() : y.shape());
  for_each_product(from, in_five(of.weight.shape()), to, ways,
                   [&](std::size_t a, std::size_t w, std::size_t b) {
                     expected[is_transposed ? a : b] += x[is_transposed ? b : a] * weight[w];
                   });
  check_close(y, expected);
  CHECK_NOTHROW(check_gradients(f, of));
  const auto compiled = compile(f, {.check = Check::never});
  test::settle(compiled, of);
  CHECK(same_bits(compiled(of), y));
  CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
}

}  // namespace

TEST_CASE("conv1d by its definition", "[conv]") {
  const Pieces of = {some_numbers({2, 4, 9}, 1), some_numbers({6, 2, 3}, 2)};
  const Conv1dOptions options = {.stride = 2, .padding = 1, .dilation = 2, .groups = 2};
  const auto f = [=](const Pieces& p) { return conv1d(p.x, p.weight, options); };
  CHECK(f(of).shape() == Shape{2, 6, 4});
  check_convolution(f, of, {{1, 1, 2}, {0, 0, 1}, {1, 1, 2}, 2}, false);
  const Tensor bias = some_numbers({6}, 3);
  CHECK(same_bits(conv1d(of.x, of.weight, bias, options), f(of) + unsqueeze(bias, 1)));
}

TEST_CASE("conv3d by its definition", "[conv]") {
  const Pieces of = {some_numbers({2, 2, 4, 5, 3}, 1), some_numbers({4, 1, 2, 3, 2}, 2)};
  const Conv3dOptions options = {
      .stride = {2, 1, 1}, .padding = {1, 1, 0}, .dilation = {2, 1, 1}, .groups = 2};
  const auto f = [=](const Pieces& p) { return conv3d(p.x, p.weight, options); };
  CHECK(f(of).shape() == Shape{2, 4, 2, 5, 2});
  check_convolution(f, of, {{2, 1, 1}, {1, 1, 0}, {2, 1, 1}, 2}, false);
  const Tensor bias = some_numbers({4}, 3);
  CHECK(same_bits(conv3d(of.x, of.weight, bias, options), f(of) + reshape(bias, {4, 1, 1, 1})));
  CHECK(conv3d(of.x, some_numbers({1, 2, 2, 2, 2}, 3), {.stride = {2}}).shape() ==
        Shape{2, 1, 2, 2, 1});
}

TEST_CASE("transposed convolutions are the gradients of convolutions", "[conv]") {
  {
    const Pieces of = {some_numbers({2, 4, 3}, 1), some_numbers({4, 3, 3}, 2)};
    const ConvTranspose1dOptions options = {
        .stride = 3, .padding = 1, .output_padding = 2, .dilation = 2, .groups = 2};
    const auto f = [=](const Pieces& p) { return conv_transpose1d(p.x, p.weight, options); };
    CHECK(f(of).shape() == Shape{2, 6, 11});
    check_convolution(f, of, {{1, 1, 3}, {0, 0, 1}, {1, 1, 2}, 2}, true);
    const Tensor bias = some_numbers({6}, 3);
    CHECK(same_bits(conv_transpose1d(of.x, of.weight, bias, options), f(of) + unsqueeze(bias, 1)));
  }
  {
    const Pieces of = {some_numbers({1, 2, 3, 2}, 1), some_numbers({2, 3, 2, 3}, 2)};
    const ConvTranspose2dOptions options = {
        .stride = {2, 1}, .padding = {0, 1}, .output_padding = {1, 0}};
    const auto f = [=](const Pieces& p) { return conv_transpose2d(p.x, p.weight, options); };
    CHECK(f(of).shape() == Shape{1, 3, 7, 2});
    check_convolution(f, of, {{1, 2, 1}, {0, 0, 1}, {1, 1, 1}, 1}, true);
    const Tensor bias = some_numbers({3}, 3);
    const Tensor with = conv_transpose2d(of.x, of.weight, bias, options);
    CHECK(same_bits(with, f(of) + reshape(bias, {3, 1, 1})));
  }
  {
    const Pieces of = {some_numbers({2, 2, 2, 3, 2}, 1), some_numbers({2, 1, 3, 2, 2}, 2)};
    const ConvTranspose3dOptions options = {.stride = {2, 1, 2},
                                            .padding = {1, 0, 1},
                                            .output_padding = {1, 0, 1},
                                            .dilation = {2, 1, 1},
                                            .groups = 2};
    const auto f = [=](const Pieces& p) { return conv_transpose3d(p.x, p.weight, options); };
    CHECK(f(of).shape() == Shape{2, 2, 6, 4, 3});
    check_convolution(f, of, {{2, 1, 2}, {1, 0, 1}, {2, 1, 1}, 2}, true);
    const Tensor bias = some_numbers({2}, 3);
    CHECK(same_bits(conv_transpose3d(of.x, of.weight, bias, options),
                    f(of) + reshape(bias, {2, 1, 1, 1})));
  }
}

TEST_CASE("sides of padding that differ, and as many results as elements", "[conv]") {
  const Pieces of = {some_numbers({1, 2, 5, 6}, 1), some_numbers({2, 2, 2, 3}, 2)};
  const auto uneven = [](const Pieces& p) {
    return conv2d(p.x, p.weight, {.padding = {1, 0}, .padding_after = {{0, 2}}});
  };
  CHECK(uneven(of).shape() == Shape{1, 2, 5, 6});
  check_convolution(uneven, of, {{1, 1, 1}, {0, 1, 0}, {1, 1, 1}, 1}, false);
  const auto same = [](const Pieces& p) { return conv2d(p.x, p.weight, {.is_same = true}); };
  CHECK(same(of).shape() == Shape{1, 2, 5, 6});
  check_convolution(same, of, {{1, 1, 1}, {0, 0, 1}, {1, 1, 1}, 1}, false);  // rows: 0 and 1
  const auto half = [](const Pieces& p) {
    return conv2d(p.x, p.weight, {.stride = 2, .dilation = {2, 1}, .is_same = true});
  };
  CHECK(half(of).shape() == Shape{1, 2, 3, 3});
  check_convolution(half, of, {{1, 2, 2}, {0, 1, 0}, {1, 2, 1}, 1}, false);
  CHECK(conv1d(ones({1, 1, 7}), ones({1, 1, 4}), {.is_same = true}).shape() == Shape{1, 1, 7});
}

TEST_CASE("convolutions refuse what does not fit", "[conv]") {
  const Tensor x = ones({1, 2, 4});
  CHECK_THROWS_WITH(conv1d(ones({2, 4}), ones({1, 2, 3})), Catch::Contains("[n, c, l]"));
  CHECK_THROWS_WITH(conv1d(x, ones({1, 3, 3})), Catch::Contains("channels"));
  CHECK_THROWS_WITH(conv1d(x, ones({1, 2, 3}), ones({2})), Catch::Contains("the bias"));
  CHECK_THROWS_WITH(conv1d(x, ones({1, 2, 3}), {.padding = 1, .is_same = true}),
                    Catch::Contains("is_same"));
  CHECK_THROWS_WITH(conv_transpose1d(x, ones({3, 1, 3})), Catch::Contains("[in, out / groups"));
  CHECK_THROWS_WITH(conv_transpose1d(x, ones({2, 1, 3}), {.output_padding = 1}),
                    Catch::Contains("less than the stride"));
  const Tensor volume = ones({1, 2, 3, 4, 4});
  CHECK_THROWS_WITH(conv3d(volume, ones({1, 2, 4, 1, 1})), Catch::Contains("fits in the depth"));
  CHECK_THROWS_WITH(conv3d(volume, ones({1, 2, 1, 1, 1}), {.stride = {1, 2}}),
                    Catch::Contains("one number or three"));
  CHECK_THROWS_WITH(conv_transpose3d(volume, ones({2, 1, 1, 1, 1}), {.padding = {2}}),
                    Catch::Contains("a result with a depth"));
}
