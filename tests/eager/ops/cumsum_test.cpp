#include "eager/ops/ops.h"
#include "tests/on_threads.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace nitinol;
using namespace nitinol::test;

TEST_CASE("cumsum adds up along an axis", "[eager][cumsum]") {
  using Ints = std::vector<int64_t>;
  const Tensor x = tensor({{1, 2, 3}, {10, 20, 30}});
  CHECK(cumsum(x, 1).to_vector<int64_t>() == Ints{1, 3, 6, 10, 30, 60});
  CHECK(cumsum(x, 0).to_vector<int64_t>() == Ints{1, 2, 3, 11, 22, 33});
  CHECK(cumsum(x, -2).to_vector<int64_t>() == Ints{1, 2, 3, 11, 22, 33});
  CHECK(cumsum(flip(x, 1), -1).to_vector<int64_t>() == Ints{3, 5, 6, 30, 50, 60});
  CHECK(cumsum(zeros({2, 0}), 1).shape() == Shape{2, 0});
  CHECK(cumsum(expand(tensor({1}), {4}), 0).to_vector<int64_t>() == Ints{1, 2, 3, 4});
}

TEST_CASE("cumsum has the dtype of sum, and integers wrap", "[eager][cumsum]") {
  for (const DType dtype : list_of(any_dtype)) {
    const Tensor x = ones({3}, dtype);
    CHECK(cumsum(x, 0).dtype() == sum(x).dtype());
    CHECK(cumsum(x, 0).to(f64).to_vector<double>() == std::vector<double>{1, 2, 3});
  }
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  CHECK(cumsum(tensor({most, int64_t{1}}, i64), 0).to_vector<int64_t>() ==
        std::vector<int64_t>{most, std::numeric_limits<int64_t>::min()});
}

TEST_CASE("cumsum keeps sums of 16-bit numbers in float32", "[eager][cumsum]") {
  for (const DType dtype : {f16, bf16}) {
    // In the dtype itself the sum would stop at 2048 or 256.
    CHECK(cumsum(ones({4096}, dtype), 0)[-1].to(f32).item<float>() == 4096);
  }
}

TEST_CASE("cumsum goes on with what is no number", "[eager][cumsum]") {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<double> sums =
      cumsum(tensor({1.0, inf, 2.0, -inf, 3.0}), 0).to_vector<double>();
  CHECK((sums[0] == 1 && sums[1] == inf && sums[2] == inf));
  CHECK((std::isnan(sums[3]) && std::isnan(sums[4])));
}

TEST_CASE("the number of threads does not change what ops along an axis give", "[eager][cumsum]") {
  const Tensor x = random_values(f32, {300, 700}, 1);
  const Tensor half = cast(x, f16);
  const Tensor indices = randint(-300, 300, {300, 700});
  const auto compute_all = [&] {
    return std::vector<Tensor>{cumsum(x, 0),
                               cumsum(x, 1),
                               cumsum(half, 0),
                               cumsum(half, 1),
                               logcumsumexp(x, 0),
                               logcumsumexp(half, 1),
                               gather(x, 0, indices),
                               gather(x, 1, indices),
                               scatter_add_along(x, 0, indices, 300),
                               scatter_add_along(half, 1, indices, 300)};
  };
  check_same_on_threads(compute_all);
}

TEST_CASE("products and extremes so far, with PyTorch's gradients", "[eager][cumsum]") {
  using Doubles = std::vector<double>;
  const Tensor x = tensor({2.0, 3.0, 0.0, 4.0, 0.0, 5.0});
  CHECK(cumprod(x, 0).to_vector<double>() == Doubles{2, 6, 0, 0, 0, 0});
  CHECK(cummax(tensor({1, 3, 2, 3, 5}), 0).to_vector<int32_t>() ==
        std::vector<int32_t>{1, 3, 3, 3, 5});
  CHECK(cummin(tensor({true, true, false, true}), 0).dtype() == boolean);
  const Tensor weights = tensor({1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0});
  const auto slope = [&](auto f) {
    const Tensor made = grad([&](const Tensor& t) { return sum(f(t, 0) * weights); })(x);
    return made.to_vector<double>();
  };
  CHECK(slope([](const Tensor& t, int axis) { return cumprod(t, axis); }) ==
        Doubles{31, 20, 24600, 0, 0, 0});
  CHECK(slope([](const Tensor& t, int axis) { return cummax(t, axis); }) ==
        Doubles{1, 110, 0, 11000, 0, 100000});
  CHECK(slope([](const Tensor& t, int axis) { return cummin(t, axis); }) ==
        Doubles{11, 0, 1100, 0, 110000, 0});
}

TEST_CASE("logcumsumexp neither overflows nor loses what is small", "[eager][cumsum]") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const Tensor x = tensor({-1000.0, -999.0, 500.0, 1000.0, -inf, 1000.0});
  const std::vector<double> sums = logcumsumexp(x, 0).to_vector<double>();
  CHECK(sums[0] == -1000);
  CHECK(sums[1] == Approx(-998.6867383124818).epsilon(1e-15));
  CHECK(sums[4] == 1000);
  CHECK(sums[5] == Approx(1000.6931471805599).epsilon(1e-15));
  const auto at = [](const Tensor& v) { return logcumsumexp(v, -1).to_vector<double>(); };
  CHECK(at(tensor({-inf, -inf, 0.0})) == std::vector<double>{-inf, -inf, 0});
  CHECK(at(tensor({0.0, inf, 1.0}))[2] == inf);
  const std::vector<double> with_nan = at(tensor({1.0, std::nan(""), 2.0}));
  CHECK(with_nan[0] == 1);
  CHECK((std::isnan(with_nan[1]) && std::isnan(with_nan[2])));
  CHECK(logcumsumexp(zeros({2, 0}), 1).shape() == Shape{2, 0});
  CHECK(logcumsumexp(ones({3}, i32), 0).dtype() == f32);
  CHECK(logcumsumexp(ones({3}, f16), 0).dtype() == f16);
  CHECK_THROWS_AS(logcumsumexp(ones({2}), 1), Error);
  CHECK_THROWS_AS(logcumsumexp(tensor(1.0), 0), Error);
}

TEST_CASE("logcumsumexp is compiled and differentiated", "[eager][cumsum]") {
  const Tensor x = random_values(f64, {3, 19}, 5);
  for (const int64_t axis : {0, 1}) {
    const auto f = [axis](const Tensor& v) { return logcumsumexp(v, axis); };
    CHECK(allclose(f(x), log(cumsum(exp(x), axis)), 1e-14).item<bool>());
    const auto compiled = compile(f, {.check = Check::never});
    for (int i = 0; i < 3; ++i) CHECK(same_bits(compiled(x), f(x)));
    CHECK_NOTHROW(check_gradients([&](const Tensor& v) { return sum(square(f(v))); }, x));
  }
}

TEST_CASE("logcumsumexp is one step, however long a line is", "[eager][cumsum]") {
  const Tensor x = random_values(f32, {2, 5000}, 6);
  const auto compiled = compile([](const Tensor& v) { return logcumsumexp(v, 1); });
  for (int i = 0; i < 3; ++i) compiled(x);
  CHECK(compiled.explain().signatures.at(0).plan.steps.size() == 1);
  const Tensor wide = cast(x, f64);
  const Tensor expected = log(cumsum(exp(wide), 1));
  CHECK(allclose(logcumsumexp(wide, 1), expected, 1e-14, 1e-14).item<bool>());
  CHECK(allclose(cast(logcumsumexp(x, 1), f64), expected, 1e-6, 1e-6).item<bool>());
}

TEST_CASE("the gradient of logcumsumexp where exponentials vanish", "[eager][cumsum]") {
  using Doubles = std::vector<double>;
  constexpr double inf = std::numeric_limits<double>::infinity();
  const auto slopes = [](const Tensor& x) {
    const Tensor weights = arange(1, x.size() + 1).to(f64);
    const auto f = [&](const Tensor& v) { return sum(logcumsumexp(v, 0) * weights); };
    return grad(f)(x).to_vector<double>();
  };
  CHECK(slopes(tensor({-inf, -inf, 0.0, -inf, 0.0})) == Doubles{0, 0, 3 + 4 + 2.5, 0, 2.5});
  const Doubles far_apart = slopes(tensor({1000.0, -1000.0, 1000.0}));
  CHECK((far_apart[0] == Approx(1 + 2 + 1.5) && far_apart[1] == 0 && far_apart[2] == Approx(1.5)));
  CHECK(slopes(full({3}, -inf, f64)) == Doubles{0, 0, 0});
  const Doubles with_infinity = slopes(tensor({0.0, inf, 1.0}));  // NaN, as PyTorch's, where it is
  CHECK((with_infinity[0] == 1 && std::isnan(with_infinity[1]) && with_infinity[2] == 0));
}

TEST_CASE("logcumsumexp is differentiated twice, and forward", "[eager][cumsum]") {
  const Tensor x = random_values(f64, {6}, 7), direction = random_values(f64, {6}, 8);
  const auto f = [](const Tensor& v) { return logcumsumexp(v, 0); };
  const auto plain = [](const Tensor& v) { return log(cumsum(exp(v), 0)); };
  CHECK(allclose(jvp(f, x, direction).second, jvp(plain, x, direction).second, 1e-13, 1e-13)
            .item<bool>());
  const auto weighted = [](const auto& g) {
    // The third has no weight: its gradient is 0, and depends on that all the same.
    return [g](const Tensor& v) { return sum(g(v) * tensor({1.0, -2.0, 0.0, 1.5, -1.0, 3.0})); };
  };
  CHECK(allclose(hessian(weighted(f), x), hessian(weighted(plain), x), 1e-12, 1e-12).item<bool>());
  const Tensor half = cast(x, f16);
  CHECK(
      allclose(cast(grad(weighted(f))(half), f64), grad(weighted(f))(x), 1e-2, 1e-2).item<bool>());
}
