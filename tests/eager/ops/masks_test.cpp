#include "nitinol.h"
#include "tests/ints.h"
#include "tests/on_threads.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

using namespace nitinol;
using nitinol::test::ints;
using namespace nitinol::test;
using Ints = std::vector<int64_t>;

TEST_CASE("masks choose elements, or parts", "[eager][masks]") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(ints(masked_select(x, x > 2)) == Ints{3, 4, 5, 6});
  CHECK(ints(masked_select(x, tensor({false, true}))) == Ints{4, 5, 6});
  CHECK(masked_select(x, tensor({false, true})).shape() == Shape{1, 3});
  CHECK(masked_select(x, x > 9).shape() == Shape{0});
  CHECK(ints(masked_select(x, x > 4, 4)) == Ints{5, 6, 0, 0});
  CHECK(ints(masked_select(x, x > 2, 1)) == Ints{3});
  CHECK(ints(masked_select(tensor(7), tensor(true))) == Ints{7});
  CHECK(ints(masked_select(permute(x, {1, 0}), permute(x, {1, 0}) > 2)) == Ints{4, 5, 3, 6});
}

TEST_CASE("masks of many pieces are the same on any number of threads", "[eager][masks]") {
  const Tensor x = random_values(f32, {3, 50'001}, 1);
  const auto compute_all = [&] {
    std::vector<Tensor> out = nonzero(x > 0.3);
    out.push_back(masked_select(x, x > 0));
    out.push_back(masked_select(permute(x, {1, 0}), x[0] > 0));
    return out;
  };
  check_same_on_threads(compute_all);
  Ints want;
  const std::vector<float> values = x[0].to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 1) want.push_back(static_cast<int64_t>(i));
  }
  CHECK(ints(nonzero(x[0] > 1)[0]) == want);
}

TEST_CASE("what masks choose is replaced", "[eager][masks]") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(ints(masked_fill(x, x > 4, 0)) == Ints{1, 2, 3, 4, 0, 0});
  CHECK(masked_fill(x, x > 4, 0).dtype() == x.dtype());
  CHECK(ints(masked_scatter(x, x > 4, tensor({8, 9}))) == Ints{1, 2, 3, 4, 8, 9});
  CHECK(ints(masked_scatter(x, x > 4, 7)) == Ints{1, 2, 3, 4, 7, 7});
  CHECK(ints(masked_scatter(x, tensor({false, true}), tensor({7, 8, 9}))) ==
        Ints{1, 2, 3, 7, 8, 9});
  CHECK(ints(masked_scatter(x, tensor({true, true}), tensor({{7}, {8}}))) ==
        Ints{7, 7, 7, 8, 8, 8});
  CHECK(ints(masked_scatter(x, x > 9, zeros({0}, i32))) == ints(x));
}

TEST_CASE("nonzero and argwhere say where", "[eager][masks]") {
  const Tensor x = tensor({{0, 2, 0}, {3, 0, 4}});
  const std::vector<Tensor> places = nonzero(x);
  CHECK((ints(places[0]) == Ints{0, 1, 1} && ints(places[1]) == Ints{1, 0, 2}));
  CHECK(ints(argwhere(x)) == Ints{0, 1, 1, 0, 1, 2});
  CHECK(argwhere(tensor(5)).shape() == Shape{1, 0});
  CHECK(ints(argwhere(x, 4)) == Ints{0, 1, 1, 0, 1, 2, -1, -1});
  CHECK(ints(count_nonzero(x, 1)) == Ints{1, 2});
  CHECK(ints(nonzero(tensor({0.0, -0.0, -1.0}))[0]) == Ints{2});
}

TEST_CASE("what is not zero is counted in one pass, however it lies", "[eager][masks]") {
  const Tensor whole = reshape(remainder(arange(30 * 40 * 50) * 7919, 11), {30, 40, 50});
  for (const DType dtype : {f16, f32, i64, i8, boolean}) {
    const Tensor x = cast(whole, dtype), turned = transpose(x, 0, 2),
                 half = slice(x, 2, {.step = 2});
    const auto expected = [](const Tensor& t, const Axes& axes) {
      return sum(cast(copy(t), boolean), axes);
    };
    for (int call = 0; call < 3; ++call) {  // the code is made in the second
      for (const Tensor& t : {x, turned, half}) {
        CHECK(same_bits(count_nonzero(t), expected(t, {})));
        CHECK(same_bits(count_nonzero(t, 1), expected(t, 1)));
        CHECK(same_bits(count_nonzero(t, {-1, 1}), expected(t, {1, 2})));
      }
      CHECK(count_nonzero(turned, 0, keepdims).shape() == Shape{1, 40, 30});
    }
  }
  CHECK(count_nonzero(tensor(3)).item<int>() == 1);
  CHECK(count_nonzero(zeros({0, 2})).item<int>() == 0);
  CHECK(count_nonzero(tensor({0.0, -0.0, std::nan("")})).item<int>() == 1);
  CHECK_THROWS_WITH(count_nonzero(whole, 3), Catch::Contains("count_nonzero"));
}

TEST_CASE("masks of a known size are compiled, others run eagerly and say why", "[jit][masks]") {
  const auto f = compile([](const Tensor& x) {
    const Tensor chosen = masked_select(x, x > 0, 3);
    return sum(chosen * chosen) + sum(masked_scatter(x, x > 1, 5.0));
  });
  const Tensor x = tensor({-1.0, 2.0, 0.5, -3.0});
  for (int i = 0; i < 3; ++i) CHECK(f(x).item<double>() == 4.25 - 1 + 5 + 0.5 - 3);
  CHECK(f.explain().plan_calls >= 1);
  const auto h = grad([](const Tensor& t) { return sum(square(masked_select(t, t > 0))); });
  CHECK(h(x).to_vector<double>() == std::vector<double>{0, 4, 1, 0});
  const auto open = compile([](const Tensor& t) { return masked_select(t, t > 0); });
  for (int i = 0; i < 3; ++i) CHECK(open(x).size() == 2);
  CHECK(open.explain().plan_calls == 0);
}

TEST_CASE("as many values as a mask chooses", "[jit][masks]") {
  const auto put = [](const Tensor& x, const Tensor& values) {
    return masked_scatter(x, x > 0, values);
  };
  const auto compiled = compile(put);
  const Tensor x = tensor({-1.0, 2.0, 0.5});
  for (int i = 0; i < 3; ++i) {
    CHECK(compiled(x, tensor({7.0, 8.0})).to_vector<double>() == std::vector<double>{-1, 7, 8});
    CHECK_THROWS_WITH(compiled(x * 0.0 - 1.0, tensor({7.0, 8.0})).to_vector<double>(),
                      Catch::Contains("masked_scatter: the mask chooses more or fewer"));
    CHECK_THROWS_WITH(put(x, tensor({7.0, 8.0, 9.0})), Catch::Contains("more or fewer"));
  }
}
