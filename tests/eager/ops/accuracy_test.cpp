// Sums and statistics of hard inputs: long, far from zero, alternating, with an outlier.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

constexpr int64_t rows = 4096, columns = 8;

/// A case and PyTorch's largest errors (relative ones of var and std, absolute ones of layer_norm),
/// as tests/reference/make_accuracy.py prints them; PyTorch 2.15. Its var computes in double
/// precision.
struct Case {
  const char* name;
  double var, std, layer_norm;
};
/// Of a float32 with the largest mantissa error: what rounding a right result may cost.
constexpr double half_a_unit = 0x1p-24;
constexpr Case cases[] = {
    {"1e2", 5.29e-08, 5.63e-08, 5.4341e-06},
    {"1e3", 4.47e-08, 5.4e-08, 5.09987e-05},
    {"1e4", 3.48e-08, 2.78e-08, 0.0012349014},
    {"1e5", 3.79e-08, 5.24e-08, 0.007370856},
    {"1e6", 5.13e-08, 5.01e-08, 0.0765953273},
    {"1234567.8", 2.62e-08, 5.57e-08, 0.0772694927},
    {"1e7", 5.27e-08, 4.98e-08, 0.2211022103},
    {"1.7e7", 0, 4.33e-08, 0.1402150032},
    {"1e8", 3.23e-08, 2.7e-08, 0.0435053684},
    {"alternating", 3.23e-08, 4.41e-08, 1.971e-07},
    {"outlier", 3.09e-08, 1.8e-08, 4.3026e-06},
    {"first outlier", 3.1e-08, 1.81e-08,
     7.7e-06},  // PyTorch 4.31e-06: here the largest square, and its rounding, comes first
    {"ramp", 1.41e-08, 1.19e-08, 9.137e-07},
    {"tiny", 8.28917e-05, 3.41e-08, 0.0001141145},
};

/// The numbers of make_accuracy.py, [rows, columns].
std::vector<float> numbers(const std::string& name) {
  uint32_t state = 12345;
  std::vector<float> out;
  for (int64_t i = 0; i < rows * columns; ++i) {
    state = state * 1664525 + 1013904223;
    const double u = static_cast<double>(state >> 8) * 0x1p-24;
    const int64_t row = i / columns;
    double x = 0;
    if (name == "alternating")
      x = (row % 2 == 0 ? 1e4 : -1e4) + u;
    else if (name == "outlier")
      x = row == 1000 ? 1e6 : u;
    else if (name == "first outlier")
      x = row == 0 ? 1e6 : u;
    else if (name == "ramp")
      x = static_cast<double>(row) * 0.1;
    else if (name == "tiny")
      x = 1e-20 * (u - 0.5);
    else
      x = std::stod(name) + (u - 0.5) * (std::stod(name) == 1e8 ? 100 : 3.5);
    out.push_back(static_cast<float>(x));
  }
  return out;
}

struct Moments {
  long double mean, var;
};
Moments moments(const std::vector<float>& x, int64_t column) {
  long double sum = 0, squares = 0;
  for (int64_t i = 0; i < rows; ++i) sum += x[static_cast<std::size_t>(i * columns + column)];
  const long double mean = sum / rows;
  for (int64_t i = 0; i < rows; ++i) {
    const long double d = x[static_cast<std::size_t>(i * columns + column)] - mean;
    squares += d * d;
  }
  return {mean, squares / rows};
}

double relative(double got, long double want) {
  return static_cast<double>(std::abs(static_cast<long double>(got) - want) / want);
}

Tensor matrix(const std::vector<float>& x) {
  return copy(borrow<float>(x.data(), {rows, columns}, [] {}));
}

/// f(x), which compiled functions agree with.
template <class F>
Tensor both(const F& f, const Tensor& x) {
  const Tensor eager = f(x);
  const auto compiled = compile(f);
  for (int i = 0; i < 3; ++i) CHECK(same_bits(compiled(x), eager));
  return eager;
}

}  // namespace

TEST_CASE("var and std are as accurate as PyTorch's on hard inputs", "[eager][accuracy]") {
  for (const Case& c : cases) {
    const std::vector<float> list = numbers(c.name);
    const Tensor x = matrix(list), turned = copy(transpose(x));
    for (const int axis : {0, 1}) {
      const Tensor& given = axis == 0 ? x : turned;
      CAPTURE(c.name, axis);
      const Tensor v = both([axis](const Tensor& t) { return var(t, axis); }, given);
      const Tensor s = both([axis](const Tensor& t) { return stddev(t, axis); }, given);
      double worst_var = 0, worst_std = 0;
      for (int64_t j = 0; j < columns; ++j) {
        const auto [mean, want] = moments(list, j);
        worst_var = std::max(worst_var, relative(v[j].item<double>(), want));
        worst_std = std::max(worst_std, relative(s[j].item<double>(), std::sqrt(want)));
      }
      CHECK(worst_var <= std::max(c.var, half_a_unit));
      CHECK(worst_std <= std::max(c.std, half_a_unit));
    }
  }
}

TEST_CASE("layer_norm is as accurate as PyTorch's on hard inputs", "[eager][accuracy]") {
  for (const Case& c : cases) {
    const std::vector<float> list = numbers(c.name);
    const auto norm = [](const Tensor& t) { return layer_norm(t, {.eps = 0}); };
    const std::vector<float> got = both(norm, copy(transpose(matrix(list)))).to_vector<float>();
    double worst = 0;
    for (int64_t j = 0; j < columns; ++j) {
      const auto [mean, var] = moments(list, j);
      for (int64_t i = 0; i < rows; ++i) {
        const long double want =
            (list[static_cast<std::size_t>(i * columns + j)] - mean) / std::sqrt(var);
        const auto value = static_cast<long double>(got[static_cast<std::size_t>(j * rows + i)]);
        worst = std::max(worst, static_cast<double>(std::abs(value - want)));
      }
    }
    CAPTURE(c.name);
    CHECK(worst <= c.layer_norm);
  }
}

TEST_CASE("statistics of constants and of numbers far apart", "[eager][accuracy]") {
  for (const DType dtype : {f32, f64}) {
    const Tensor x = full({3, 768}, 100000.3, dtype);
    for (const int axis : {0, 1}) {
      CHECK(max(abs(var(x, axis))).item<double>() <= (dtype == f32 ? 0 : 1e-20));
      CHECK_FALSE(std::isnan(sum(stddev(x, axis)).item<double>()));
    }
    CHECK(max(abs(layer_norm(x))).item<double>() < 1e-6);
  }
  CHECK(var(tensor({3e38F, 1e38F})).item<float>() == std::numeric_limits<float>::infinity());
  CHECK(stddev(tensor({1e30F, 3e30F})).item<float>() == Approx(1e30F));
  CHECK(stddev(tensor({1e-30F, 3e-30F})).item<float>() == Approx(1e-30F));
  CHECK(std::isnan(var(tensor({1.0F, std::numeric_limits<float>::infinity()})).item<float>()));
  CHECK(std::isnan(var(zeros({0})).item<float>()));
  CHECK(var(zeros({0, 2}), 0).shape() == Shape{2});
}

TEST_CASE("var of float64 far from zero", "[eager][accuracy]") {
  const std::vector<float> list = numbers("1e2");
  const Tensor x = cast(matrix(list), f64);
  for (const double offset : {0.0, 1e6, 1e9}) {
    CAPTURE(offset);
    // x + offset is rounded, so the reference takes what it was rounded to.
    const Tensor shifted = x + offset;
    const Tensor back = shifted - (offset + 100);  // exact
    const double want = var(back, 0)[0].item<double>();
    for (const int axis : {0, 1}) {
      const Tensor v = var(axis == 0 ? shifted : copy(transpose(shifted)), axis);
      CHECK(v[0].item<double>() == Approx(want).epsilon(1e-13));
    }
  }
}

TEST_CASE("sums of ten million float32 lose at most 4 eps", "[eager][accuracy]") {
  constexpr int64_t n = 10'000'000;
  constexpr double bound = 4 * 0x1p-23;
  const auto check = [&](const Tensor& x, const char* name) {
    CAPTURE(name);
    const Tensor wide = cast(x, f64);
    const double want = sum(wide).item<double>(), size = sum(abs(wide)).item<double>();
    CHECK(std::abs(sum(x).item<double>() - want) <= bound * size);
    const Tensor table = reshape(x, {n / 4, 4});
    const Tensor got = cast(sum(table, {0}), f64), wanted = sum(cast(table, f64), {0});
    CHECK(max(abs(got - wanted)).item<double>() <= bound * size / 4);
  };
  for (const float value : {0.1F, 0.3F, 1.0F / 3, 1.9999999F, 0.7F, 1.1F}) {
    check(full({n}, value), "constant");
  }
  manual_seed(5);
  check(rand({n}), "uniform");
  check(randn({n}), "normal");
  check(arange(n).to(f32), "ramp");
}
