#include "core/math.h"

#include "bench/special_functions.h"
#include "tests/core/math/lanes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace nitinol;
using nitinol::test::count_differences;
using nitinol::test::run_loop;
using nitinol::test::samples;

namespace {

/// Error in ulp of the format T; a wrong NaN, infinity or sign of zero is an infinite error. The
/// complete check is bench/accuracy.cpp.
template <class T>
double error_in_ulp(T got, long double want) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  using Limits = std::numeric_limits<T>;
  const T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isinf(rounded) || want == 0) {
    return test::same(got, rounded) ? 0 : wrong;
  }
  if (std::isnan(got) || std::isinf(got)) return wrong;
  const int exponent = std::max(std::ilogb(want), Limits::min_exponent - 1);
  return static_cast<double>(
      std::ldexp(std::abs(static_cast<long double>(got) - want), Limits::digits - 1 - exponent));
}

template <class T, class F, class Reference>
void check_unary(const char* name, F formula, Reference reference, double limit) {
  const std::vector<T> x = samples<T>(20000, 1);
  CAPTURE(name, sizeof(T));
  CHECK(count_differences<T>(formula, x) == 0);
  const std::vector<T> y = run_loop<T>(host_isa(), formula, x);
  double worst = 0;
  T at = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double error = error_in_ulp(y[i], reference(static_cast<long double>(x[i])));
    if (error > worst) {
      worst = error;
      at = x[i];
    }
  }
  CAPTURE(at);
  CHECK(worst <= limit);
}

template <class F, class Reference>
void check_function(const char* name, F formula, Reference reference, double limit) {
  check_unary<float>(name, formula, reference, limit);
  check_unary<double>(name, formula, reference, limit);
}

long double logistic(long double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
template <class F>
auto times_x(F f) {
  return [f](long double x) { return x * f(x); };
}

/// std::fmod, whose NaN of a zero divisor is negative.
long double truncated(long double a, long double b) {
  const long double r = std::fmod(a, b);
  return std::isnan(r) ? std::numeric_limits<long double>::quiet_NaN() : r;
}

template <class F>
float at(F formula, float x) {
  return formula(Num<float>(x)).value;
}

}  // namespace

TEST_CASE("activations are accurate on the whole range", "[core][math][no-isa]") {
  check_function(
      "sigmoid", [](auto x) { return sigmoid(x); }, logistic, 2);
  check_function(
      "silu", [](auto x) { return silu(x); }, times_x(logistic), 2);
  check_function(
      "gelu", [](auto x) { return gelu(x); }, times_x(special::normal_cdf), 2);
  check_function(  // many of them beside the zero at -0.75, where the last bits of 0.3 are left
      "gelu_slope", [](auto x) { return gelu_slope(x); }, special::gelu_slope, 64);
  check_function(
      "gelu_tanh", [](auto x) { return gelu_tanh(x); }, times_x([](long double x) {
        return logistic(1.595769121605730711759542394021987L * (x + 0.044715L * x * x * x));
      }),
      2);
  CHECK(at([](auto x) { return gelu(x); }, -5) == Approx(-1.4332577e-06F).epsilon(1e-6));
  CHECK(at([](auto x) { return silu(x); }, -89) == Approx(-1.9822e-37).epsilon(1e-3));
}

TEST_CASE("functions are accurate and agree on every instruction set", "[core][math][no-isa]") {
  check_function(
      "exp", [](auto x) { return exp(x); }, [](auto x) { return std::exp(x); }, 1);
  check_function(
      "exp2", [](auto x) { return exp2(x); }, [](auto x) { return std::exp2(x); }, 1);
  check_function(
      "log", [](auto x) { return log(x); }, [](auto x) { return std::log(x); }, 1);
  check_function(
      "sqrt", [](auto x) { return sqrt(x); }, [](auto x) { return std::sqrt(x); }, 0.5);
  check_function(
      "expm1", [](auto x) { return expm1(x); }, [](auto x) { return std::expm1(x); }, 2);
  check_function(
      "log2", [](auto x) { return log2(x); }, [](auto x) { return std::log2(x); }, 2);
  check_function(
      "log10", [](auto x) { return log10(x); }, [](auto x) { return std::log10(x); }, 2);
  check_function(
      "log1p", [](auto x) { return log1p(x); }, [](auto x) { return std::log1p(x); }, 2);
  check_function(
      "sin", [](auto x) { return sin(x); }, [](auto x) { return std::sin(x); }, 2);
  check_function(
      "cos", [](auto x) { return cos(x); }, [](auto x) { return std::cos(x); }, 2);
  check_function(
      "tan", [](auto x) { return tan(x); }, [](auto x) { return std::tan(x); }, 2);
  check_function(
      "tanh", [](auto x) { return tanh(x); }, [](auto x) { return std::tanh(x); }, 2);
  check_function(
      "erf", [](auto x) { return erf(x); }, [](auto x) { return std::erf(x); }, 2);
}

TEST_CASE("inverse and hyperbolic functions are accurate", "[core][math][no-isa]") {
  check_function(
      "cbrt", [](auto x) { return cbrt(x); }, [](auto x) { return std::cbrt(x); }, 1);
  check_function(
      "asin", [](auto x) { return asin(x); }, [](auto x) { return std::asin(x); }, 2);
  check_function(
      "acos", [](auto x) { return acos(x); }, [](auto x) { return std::acos(x); }, 2);
  check_function(
      "atan", [](auto x) { return atan(x); }, [](auto x) { return std::atan(x); }, 2);
  check_function(
      "sinh", [](auto x) { return sinh(x); }, [](auto x) { return std::sinh(x); }, 2);
  check_function(
      "cosh", [](auto x) { return cosh(x); }, [](auto x) { return std::cosh(x); }, 2);
  check_function(
      "asinh", [](auto x) { return asinh(x); }, [](auto x) { return std::asinh(x); }, 2);
  check_function(
      "acosh", [](auto x) { return acosh(x); }, [](auto x) { return std::acosh(x); }, 2);
  check_function(
      "atanh", [](auto x) { return atanh(x); }, [](auto x) { return std::atanh(x); }, 2);
  check_function(
      "erfc", [](auto x) { return erfc(x); }, [](auto x) { return std::erfc(x); }, 2);
}

TEST_CASE("erfinv, lgamma and digamma are accurate", "[core][math][no-isa]") {
  check_function(
      "erfinv", [](auto x) { return erfinv(x); }, special::erfinv, 2);
  // Near zeros on the negative axis terms cancel: in float64 errors are those of the terms.
  check_function(
      "lgamma", [](auto x) { return lgamma(abs(x)); },
      [](auto x) { return std::lgamma(std::abs(x)); }, 3);
  check_function(
      "digamma", [](auto x) { return digamma(abs(x)); },
      [](auto x) { return special::digamma(std::abs(x)); }, 3);
  check_unary<float>(
      "lgamma", [](auto x) { return lgamma(x); }, [](auto x) { return std::lgamma(x); }, 2);
  check_unary<float>(
      "digamma", [](auto x) { return digamma(x); }, special::digamma, 2);
  constexpr double inf = std::numeric_limits<double>::infinity();
  for (const double x : {0.0, -0.0, -1.0, -2.0, -1e300, -1e308, inf, -inf}) {
    CAPTURE(x);
    CHECK(lgamma(Num<double>(x)).value == inf);
  }
  CHECK(lgamma(Num<double>(1)).value == 0);
  CHECK(lgamma(Num<double>(2)).value == 0);
  CHECK(digamma(Num<double>(0.0)).value == -inf);
  CHECK(digamma(Num<double>(-0.0)).value == inf);
  CHECK(std::isnan(digamma(Num<double>(-3)).value));
}

TEMPLATE_TEST_CASE("functions of two numbers have the special cases of C", "[core][math][no-isa]",
                   float, double) {
  using T = TestType;
  using Limits = std::numeric_limits<T>;
  constexpr T inf = Limits::infinity(), nan = Limits::quiet_NaN();
  const T edges[] = {0,
                     T{-0.0},
                     1,
                     -1,
                     2,
                     -2,
                     T{0.5},
                     -3,
                     inf,
                     -inf,
                     nan,
                     Limits::max(),
                     -Limits::max(),
                     Limits::min(),
                     -Limits::min(),
                     Limits::denorm_min(),
                     -Limits::denorm_min(),
                     static_cast<T>(1e-30),
                     static_cast<T>(1e30)};
  for (const T x : edges) {
    for (const T y : edges) {
      CAPTURE(x, y);
      const Num<T> a(x), b(y);
      CHECK(error_in_ulp(atan2(a, b).value, std::atan2(x * 1.0L, y * 1.0L)) <= 2);
      CHECK(error_in_ulp(hypot(a, b).value, std::hypot(x * 1.0L, y * 1.0L)) <= 2);
      CHECK(test::same(nextafter(a, b).value, std::nextafter(x, y)));
      CHECK(error_in_ulp(fmod(a, b).value, truncated(x, y)) == 0);
      CHECK((fmax(a, b).value == std::fmax(x, y) || (std::isnan(x) && std::isnan(y))));
      CHECK((fmin(a, b).value == std::fmin(x, y) || (std::isnan(x) && std::isnan(y))));
      CHECK(signbit(a).value == std::signbit(x));
    }
  }
  std::vector<T> x = samples<T>(20000, 1), y = samples<T>(20000, 2);
  std::reverse(y.begin(), y.end());
  const auto check = [&](auto formula, auto reference, double limit) {
    CHECK(count_differences<T>(formula, x, y) == 0);
    const std::vector<T> z = run_loop<T>(host_isa(), formula, x, y);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
      worst = std::max(worst, error_in_ulp(z[i], reference(x[i] * 1.0L, y[i] * 1.0L)));
    CHECK(worst <= limit);
  };
  check([](auto a, auto b) { return atan2(a, b); }, [](auto a, auto b) { return std::atan2(a, b); },
        2);
  check([](auto a, auto b) { return hypot(a, b); }, [](auto a, auto b) { return std::hypot(a, b); },
        2);
  check([](auto a, auto b) { return fmod(a, b); }, truncated, 0);
  CHECK(count_differences<T>([](auto a, auto b) { return nextafter(a, b); }, x, y) == 0);
  CHECK(count_differences<T>([](auto a, auto b) { return logaddexp(a, b); }, x, y) == 0);
}

TEST_CASE("odd functions keep the sign of zero", "[core][math][no-isa]") {
  CHECK(std::signbit(at([](auto x) { return sin(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return tan(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return tanh(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return erf(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return expm1(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return log1p(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return cbrt(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return asin(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return atan(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return sinh(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return asinh(x); }, -0.0F)));
  CHECK(std::signbit(at([](auto x) { return atanh(x); }, -0.0F)));
}

TEST_CASE("powers of 2 are exact", "[core][math][no-isa]") {
  for (int k = -149; k < 128; ++k) {
    const float power = std::ldexp(1.0F, k);
    CHECK(at([](auto x) { return exp2(x); }, static_cast<float>(k)) == power);
    CHECK(at([](auto x) { return log2(x); }, power) == static_cast<float>(k));
  }
}

TEST_CASE("the cosine of a tiny angle is 1", "[core][math][no-isa]") {
  CHECK(cos(Num<float>(0)).value == 1);
  CHECK(cos(Num<float>(1e-5)).value == 1);
  CHECK(cos(Num<double>(-4.2484559200764899e-09)).value == 1);  // 2.1 ulp off with another method
}

TEST_CASE("angles beyond the exact range are reduced by the bits of 1/pi", "[core][math][no-isa]") {
  for (const float x : {1e5F, 1e10F, 3.4e38F, 16367173.0F, -2.9e22F}) {
    CHECK(error_in_ulp(at([](auto v) { return sin(v); }, x), std::sin(x * 1.0L)) <= 2);
    CHECK(error_in_ulp(at([](auto v) { return cos(v); }, x), std::cos(x * 1.0L)) <= 2);
    CHECK(error_in_ulp(at([](auto v) { return tan(v); }, x), std::tan(x * 1.0L)) <= 2);
  }
}

TEMPLATE_TEST_CASE("pow is accurate and agrees on every instruction set", "[core][math][no-isa]",
                   float, double) {
  std::vector<TestType> x = samples<TestType>(20000, 1), y = samples<TestType>(20000, 2);
  std::reverse(y.begin(), y.end());
  for (std::size_t i = 100; i < x.size(); i += 3) {
    x[i] = std::abs(x[i]);
    const double position = static_cast<double>(i) / 9000 - 1.1;
    y[i] = static_cast<TestType>(position * std::log(std::numeric_limits<TestType>::max()) /
                                 std::log(x[i]));
  }
  const auto formula = [](auto a, auto b) { return pow(a, b); };
  CHECK(count_differences<TestType>(formula, x, y) == 0);
  const std::vector<TestType> z = run_loop<TestType>(host_isa(), formula, x, y);
  double worst = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double want = std::pow(static_cast<long double>(x[i]), y[i] * 1.0L);
    worst = std::max(worst, error_in_ulp(z[i], want));
  }
  CHECK(worst <= 2);
}

TEST_CASE("pow has the special cases of C", "[core][math][no-isa]") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const float edges[] = {0,  -0.0F, 1,    -1,  2,     -2,     0.5F,   -0.5F,    3,
                         -3, inf,   -inf, nan, 1e30F, -1e30F, 1e-40F, 16777216, 16777215};
  for (const float x : edges) {
    for (const float y : edges) {
      const float got = pow(Num<float>(x), Num<float>(y)).value;
      CAPTURE(x, y);
      CHECK(error_in_ulp(got, std::pow(x * 1.0L, y * 1.0L)) <= 2);
    }
  }
}

TEST_CASE("maximum and minimum propagate NaN and order zeros", "[core][math][no-isa]") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x = {1, nan, 2, 0, -0.0F, -3}, y = {nan, 1, 5, -0.0F, 0, -4};
  const auto larger = [](auto a, auto b) { return maximum(a, b); };
  const auto smaller = [](auto a, auto b) { return minimum(a, b); };
  const std::vector<float> high = run_loop<float>(host_isa(), larger, x, y);
  const std::vector<float> low = run_loop<float>(host_isa(), smaller, x, y);
  CHECK((std::isnan(high[0]) && std::isnan(high[1]) && std::isnan(low[0]) && std::isnan(low[1])));
  CHECK((high[2] == 5 && low[2] == 2 && high[5] == -3 && low[5] == -4));
  CHECK((!std::signbit(high[3]) && !std::signbit(high[4])));
  CHECK((std::signbit(low[3]) && std::signbit(low[4])));
  const std::vector<float> a = samples<float>(5000, 1), b = samples<float>(5000, 2);
  CHECK(count_differences<float>(larger, a, b) == 0);
  CHECK(count_differences<float>(smaller, a, b) == 0);
}

TEST_CASE("sign and copysign treat zeros and NaN as documented", "[core][math][no-isa]") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN();
  const auto sign_of = [](auto x) { return sign(x); };
  CHECK(at(sign_of, -3) == -1);
  CHECK(at(sign_of, std::numeric_limits<float>::infinity()) == 1);
  CHECK(!std::signbit(at(sign_of, -0.0F)));
  CHECK(std::isnan(at(sign_of, nan)));
  const auto with_sign = [](auto x, auto y) { return copysign(x, y); };
  const std::vector<float> size = {1, 1, -1, -1}, sign = {-0.0F, -nan, 2, nan};
  CHECK(run_loop<float>(host_isa(), with_sign, size, sign) == std::vector<float>{-1, 1, 1, 1});
}
